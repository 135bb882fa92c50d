//! Profiles of seccomp and AppArmor.

use coracle_api::Path;
use coracle_api::field_error::FieldError;
use k8s_openapi::api::core::v1::{AppArmorProfile, SeccompProfile};

use super::super::super::internal;
use super::super::{path, validate_enum};
use crate::strategy::Errors;

const TYPES: &[&str] = &["Localhost", "RuntimeDefault", "Unconfined"];

/// The longest path.
const LOCALHOST_PROFILE: usize = 4095;

pub(super) fn validate_seccomp(
    profile: Option<&SeccompProfile>,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let Some(profile) = profile else { return };
    match profile.type_.as_str() {
        "" => {
            let detail = "type is required when seccompProfile is set";
            errors.push(FieldError::required(&at.field("type"), detail));
        }
        of => validate_enum(of, TYPES, &at.field("type"), errors),
    }

    let place = at.field("localhostProfile");
    match (profile.type_.as_str(), &profile.localhost_profile) {
        ("Localhost", None) => {
            errors.push(FieldError::required(
                &place,
                "must be set when seccomp type is Localhost",
            ));
        }
        ("Localhost", Some(file)) => path::validate_descending_path(file, &place, errors),
        (_, Some(_)) => {
            let detail = "can only be set when seccomp type is Localhost";
            errors.push(FieldError::invalid(
                &place,
                internal::seccomp_profile(profile),
                detail,
            ));
        }
        (_, None) => {}
    }
}

pub(in crate::core::pod) fn validate_app_armor(
    profile: Option<&AppArmorProfile>,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let Some(profile) = profile else { return };
    let place = at.field("localhostProfile");
    match profile.type_.as_str() {
        "Localhost" => match profile.localhost_profile.as_deref() {
            None | Some("") => {
                errors.push(FieldError::required(
                    &place,
                    "must be set when AppArmor type is Localhost",
                ));
            }
            Some(name) => validate_localhost(name, &place, errors),
        },
        "RuntimeDefault" | "Unconfined" => {
            if let Some(name) = &profile.localhost_profile {
                let detail = "can only be set when AppArmor type is Localhost";
                errors.push(FieldError::invalid_str(&place, name, detail));
            }
        }
        "" => {
            let detail = "type is required when appArmorProfile is set";
            errors.push(FieldError::required(&at.field("type"), detail));
        }
        other => validate_enum(other, TYPES, &at.field("type"), errors),
    }
}

fn validate_localhost(name: &str, at: &Path<'_>, errors: &mut Errors) {
    if name.trim() != name {
        errors.push(FieldError::invalid_str(
            at,
            name,
            "must not be padded with whitespace",
        ));
    }
    if name.len() > LOCALHOST_PROFILE {
        errors.push(FieldError::too_long(at, LOCALHOST_PROFILE));
    }
}
