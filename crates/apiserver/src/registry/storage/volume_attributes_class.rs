//! VolumeAttributesClass: what can be changed of a volume that is there. Never changed itself.

use coracle_api::Path;
use coracle_api::field_error::FieldError;
use k8s_openapi::api::storage::v1::VolumeAttributesClass;

use super::{judge_parameters, judge_provisioner};
use crate::registry::strategy::{Context, Errors, Judged, Strategy};

pub(in crate::registry) struct VolumeAttributesClasses;

impl Strategy for VolumeAttributesClasses {
    type Object = VolumeAttributesClass;

    fn validate(
        &self,
        new: &Judged<'_, VolumeAttributesClass>,
        _: &Context<'_>,
        errors: &mut Errors,
    ) {
        judge_provisioner(&new.driver_name, &Path::Root.field("driverName"), errors);
        let at = Path::Root.field("parameters");
        judge_parameters(&new.parameters, &at, errors);

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
        new: &Judged<'_, VolumeAttributesClass>,
        old: &Judged<'_, VolumeAttributesClass>,
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
