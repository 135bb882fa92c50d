//! Taints of devices, and tolerations of them.

use coracle_api::Path;
use coracle_api::field_error::{FieldError, refuse};
use coracle_api::names::{label_value, qualified_name};
use k8s_openapi::api::resource::v1::{DeviceTaint, DeviceToleration};

use crate::strategy::Errors;
use crate::validate::{text, validate_one_of};

pub(super) const EFFECTS: [&str; 3] = ["NoExecute", "NoSchedule", "None"];

pub(super) fn validate_taint(taint: &DeviceTaint, at: &Path<'_>, errors: &mut Errors) {
    let key = &taint.key;
    refuse(&at.field("key"), key, qualified_name(key), errors);
    let value = text(&taint.value);
    refuse(&at.field("value"), value, label_value(value), errors);

    let at = at.field("effect");
    match taint.effect.as_str() {
        "" => errors.push(FieldError::required(&at, "")),
        effect => validate_one_of(effect, &EFFECTS, &at, errors),
    }
}

pub(super) fn validate_toleration(
    toleration: &DeviceToleration,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let key = text(&toleration.key);
    if !key.is_empty() {
        refuse(&at.field("key"), key, qualified_name(key), errors);
    }

    let (value, place) = (text(&toleration.value), at.field("value"));
    match text(&toleration.operator) {
        "Exists" if !value.is_empty() => {
            let why = "must be empty for operator `Exists`";
            errors.push(FieldError::invalid_str(&place, value, why));
        }
        "Exists" => {}
        "Equal" => refuse(&place, value, label_value(value), errors),
        "" => errors.push(FieldError::required(&at.field("operator"), "")),
        other => validate_one_of(other, &["Equal", "Exists"], &at.field("operator"), errors),
    }

    let effect = text(&toleration.effect);
    if !effect.is_empty() {
        validate_one_of(effect, &EFFECTS, &at.field("effect"), errors);
    }
}
