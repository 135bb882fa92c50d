//! DeviceClass: which devices a claim may request, and how drivers are configured for them.

use coracle_api::field_error::FieldError;
use coracle_api::names::dns1123_subdomain;
use coracle_api::resource_name;
use coracle_api::time::Timestamp;
use k8s_openapi::api::resource::v1::{DeviceClass, DeviceClassSpec};

use super::{MOST_CONFIGURATIONS, validate_configuration, validate_list, validate_selectors};
use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells::{age, name};
use crate::strategy::{Context, Errors, SPEC, Strategy, View};
use crate::validate::items;
use crate::{OwnMetadata, Part};

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &DeviceClasses,
    printer: printer!(print_row),
    ..Behaviour::DEFAULT
};

struct DeviceClasses;

impl Strategy for DeviceClasses {
    type Object = DeviceClass;

    fn own_metadata(&self, _: Part) -> OwnMetadata {
        OwnMetadata {
            on_update: false,
            ..OwnMetadata::named(dns1123_subdomain)
        }
    }

    fn validate(&self, new: &View<'_, DeviceClass>, _: &Context<'_>, errors: &mut Errors) {
        validate_spec(&new.spec, None, errors);
    }

    fn validate_update(
        &self,
        new: &View<'_, DeviceClass>,
        old: &View<'_, DeviceClass>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        let metadata = self.own_metadata(cx.part);
        metadata.validate(new.tree, cx, errors);
        metadata.validate_change(new.tree, old.tree, errors);
        validate_spec(&new.spec, Some(&old.spec), errors);
    }
}

/// What is as it was before is accepted by older rules.
fn validate_spec(spec: &DeviceClassSpec, old: Option<&DeviceClassSpec>, errors: &mut Errors) {
    let selectors = items(&spec.selectors);
    validate_selectors(selectors, &SPEC.field("selectors"), errors);

    let configurations = items(&spec.config);
    let stored = old.is_some_and(|old| items(&old.config) == configurations);
    validate_list(
        configurations,
        MOST_CONFIGURATIONS,
        &SPEC.field("config"),
        errors,
        |config, at, errors| validate_configuration(config.opaque.as_ref(), stored, at, errors),
    );

    if let Some(name) = spec
        .extended_resource_name
        .as_deref()
        .filter(|name| !resource_name::is_extended(name))
    {
        let at = SPEC.field("extendedResourceName");
        let why = "must be a valid extended resource name";
        errors.push(FieldError::invalid_str(&at, name, why));
    }
}

fn print_row(class: &DeviceClass, now: Timestamp) -> Row {
    row![name(&class.metadata), age(&class.metadata, now)]
}
