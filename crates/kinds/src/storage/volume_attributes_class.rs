//! VolumeAttributesClass: the mutable attributes of volumes. The class itself is immutable.

use coracle_api::Path;
use coracle_api::field_error::FieldError;
use coracle_api::time::Timestamp;
use k8s_openapi::api::storage::v1::VolumeAttributesClass;

use super::{validate_parameters, validate_provisioner};
use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells;
use crate::strategy::{Context, Errors, Strategy, View};

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &VolumeAttributesClasses,
    printer: printer!(print_row),
    ..Behaviour::DEFAULT
};

struct VolumeAttributesClasses;

impl Strategy for VolumeAttributesClasses {
    type Object = VolumeAttributesClass;

    fn validate(
        &self,
        new: &View<'_, VolumeAttributesClass>,
        _: &Context<'_>,
        errors: &mut Errors,
    ) {
        validate_provisioner(&new.driver_name, &Path::Root.field("driverName"), errors);
        let at = Path::Root.field("parameters");
        validate_parameters(&new.parameters, &at, errors);

        if new
            .parameters
            .as_ref()
            .is_none_or(|parameters| parameters.is_empty())
        {
            errors.push(FieldError::required(
                &at,
                "must contain at least one key/value pair",
            ));
        }
    }

    fn validate_update(
        &self,
        new: &View<'_, VolumeAttributesClass>,
        old: &View<'_, VolumeAttributesClass>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        let mut kept = |name: &str, same: bool| {
            if !same {
                let detail = format!("updates to {name} are forbidden.");
                errors.push(FieldError::forbidden(&Path::Root.field(name), detail));
            }
        };
        kept("driverName", new.driver_name == old.driver_name);
        kept("parameters", new.parameters == old.parameters);
        self.validate_anew(new, cx, errors);
    }
}

fn print_row(class: &VolumeAttributesClass, now: Timestamp) -> Row {
    row![
        cells::name(&class.metadata),
        class.driver_name.as_str(),
        cells::age(&class.metadata, now)
    ]
}
