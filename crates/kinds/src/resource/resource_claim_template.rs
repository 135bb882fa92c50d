//! ResourceClaimTemplate: the claims of a workload's pods. Its spec never changes.

use coracle_api::Value;
use coracle_api::field_error::{FieldError, as_json};
use coracle_api::meta::validate::IMMUTABLE;
use coracle_api::time::Timestamp;
use k8s_openapi::api::resource::v1::ResourceClaimTemplate;

use super::claim_spec;
use crate::behaviour::Behaviour;
use crate::core::claim;
use crate::print::Row;
use crate::print::cells::{age, name};
use crate::strategy::{Context, Errors, SPEC, Strategy, View};
use crate::validate::{internal, internal_form};
use crate::{OwnMetadata, Part};

/// The members of metadata, in the order in which errors show them.
const METADATA: [&str; 15] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &ResourceClaimTemplates,
    printer: printer!(print_row),
    ..Behaviour::DEFAULT
};

struct ResourceClaimTemplates;

impl Strategy for ResourceClaimTemplates {
    type Object = ResourceClaimTemplate;

    /// Administrative access is checked before the metadata of a new template.
    fn own_metadata(&self, _: Part) -> OwnMetadata {
        OwnMetadata {
            on_create: false,
            on_update: false,
            ..OwnMetadata::named(self.name_rule())
        }
    }

    fn validate(
        &self,
        new: &View<'_, ResourceClaimTemplate>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        let claim = new.spec.spec.devices.clone().unwrap_or_default();
        claim_spec::validate_admin_access(&claim, cx, errors);
        self.validate_template(new, cx, errors);
    }

    fn validate_update(
        &self,
        new: &View<'_, ResourceClaimTemplate>,
        old: &View<'_, ResourceClaimTemplate>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        self.validate_template(new, cx, errors);
        self.own_metadata(cx.part)
            .validate_change(new.tree, old.tree, errors);

        let (spec, before) = (new.tree.get("spec"), old.tree.get("spec"));
        let part = |spec: Option<&Value>, name: &str| spec.and_then(|spec| spec.get(name)).cloned();
        let metadata = |spec| part(spec, "metadata").filter(|found| *found != Value::object());
        let inner = |spec: Option<&Value>| {
            let (mut unused, inner) = (Errors::new(), part(spec, "spec"));
            let old = part(before, "spec");
            let form = &claim_spec::FORM;
            internal_form::validate_immutable(
                inner.as_ref(),
                old.as_ref(),
                form,
                &SPEC,
                &mut unused,
            );
            unused.is_empty()
        };

        if metadata(spec) != metadata(before) || !inner(spec) {
            errors.push(FieldError::invalid(&SPEC, shown(spec), IMMUTABLE));
        }
    }
}

impl ResourceClaimTemplates {
    fn validate_template(
        &self,
        new: &View<'_, ResourceClaimTemplate>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        self.own_metadata(cx.part).validate(new.tree, cx, errors);
        if let Some(metadata) = &new.spec.metadata {
            claim::validate_template_metadata(metadata, &SPEC.field("metadata"), errors);
        }

        let claim = new.spec.spec.devices.clone().unwrap_or_default();
        claim_spec::validate(&claim, &SPEC.field("spec.devices"), errors);
    }
}

/// The spec as errors show it: the metadata is embedded in it.
fn shown(spec: Option<&Value>) -> String {
    let metadata = spec.and_then(|spec| spec.get("metadata"));
    let mut members: Vec<(&str, String)> = METADATA
        .into_iter()
        .filter_map(|name| Some((name, as_json(metadata?.get(name)?))))
        .collect();

    let inner = spec.and_then(|spec| spec.get("spec"));
    members.push(("Spec", internal_form::shown(inner, &claim_spec::FORM)));
    internal::object(&members)
}

fn print_row(template: &ResourceClaimTemplate, now: Timestamp) -> Row {
    row![name(&template.metadata), age(&template.metadata, now)]
}
