//! Kinds of `storage.k8s.io`.

pub(crate) mod csi_driver;
pub(crate) mod csi_node;
pub(crate) mod csi_storage_capacity;
#[cfg(test)]
mod print_tests;
pub(crate) mod storage_class;
pub(crate) mod volume_attachment;
pub(crate) mod volume_attributes_class;

use std::collections::BTreeMap;

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::{Path, names};

use crate::strategy::Errors;

/// How many parameters a class may have, and how many bytes in all.
const MOST_PARAMETERS: usize = 512;
const LONGEST_PARAMETERS: usize = 256 << 10;

/// Validates the name of a driver as a class has it.
fn validate_provisioner(found: &str, at: &Path<'_>, errors: &mut Errors) {
    match found.to_lowercase().as_str() {
        "" => errors.push(FieldError::required(at, "")),
        lowered => refuse(at, lowered, names::qualified_name(lowered), errors),
    }
}

/// Validates the parameters of a class.
fn validate_parameters(
    parameters: &Option<BTreeMap<String, String>>,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let none = BTreeMap::new();
    let parameters = parameters.as_ref().unwrap_or(&none);
    if parameters.len() > MOST_PARAMETERS {
        return errors.push(FieldError::too_long(at, MOST_PARAMETERS));
    }
    if parameters.contains_key("") {
        errors.push(FieldError::invalid_str(at, "", "field can not be empty."));
    }

    if parameters
        .iter()
        .map(|(key, value)| key.len() + value.len())
        .sum::<usize>()
        > LONGEST_PARAMETERS
    {
        errors.push(FieldError::too_long(at, LONGEST_PARAMETERS));
    }
}

/// Validates the name of a CSI driver where something refers to it.
pub(super) fn validate_driver_name(name: &str, at: &Path<'_>, errors: &mut Errors) {
    if name.is_empty() {
        return errors.push(FieldError::required(at, ""));
    }
    if name.len() > 63 {
        errors.push(FieldError::too_long(at, 63));
    }

    refuse(
        at,
        name,
        names::dns1123_subdomain(&name.to_lowercase()),
        errors,
    );
}
