//! Kinds of `resource.k8s.io`: devices, and the claims to them.
//!
//! Here is what several of them check: names of drivers, pools and devices, lists of limited
//! length, selectors, and parameters of drivers. [`claim_spec`] has the spec of a claim,
//! [`allocation`] and [`claim_status`] its status, [`device`] the devices of a slice.

mod allocation;
mod authorization;
mod capacity;
mod claim_spec;
mod claim_status;
mod device;
pub(crate) mod device_class;
pub(crate) mod device_taint_rule;
#[cfg(test)]
mod print_tests;
pub(crate) mod resource_claim;
pub(crate) mod resource_claim_template;
pub(crate) mod resource_pool_status_request;
pub(crate) mod resource_slice;
mod taint;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use coracle_api::Path;
use coracle_api::field_error::{FieldError, refuse};
use coracle_api::names::{c_identifier, dns1123_subdomain};
use coracle_expressions::device_selector;
use k8s_openapi::api::resource::v1::{DeviceSelector, OpaqueDeviceConfiguration};
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;

use crate::storage::validate_driver_name;
use crate::strategy::Errors;
use crate::validate::{internal, validate_required};

const MOST_SELECTORS: usize = 32;
const MOST_CONFIGURATIONS: usize = 32;
const LONGEST_PARAMETERS: usize = 10 << 10;
const LONGEST_POOL_NAME: usize = 253;
const LONGEST_IDENTIFIER: usize = 32;

/// Validates each item of a list, unless it has more than `most`.
fn validate_list<T>(
    list: &[T],
    most: usize,
    at: &Path<'_>,
    errors: &mut Errors,
    mut validate: impl FnMut(&T, &Path<'_>, &mut Errors),
) {
    if list.len() > most {
        return errors.push(FieldError::too_many(at, list.len(), most));
    }

    for (index, item) in list.iter().enumerate() {
        validate(item, &at.index(index), errors);
    }
}

/// As [`validate_list`]; no two items may have the same key.
fn validate_set<T>(
    list: &[T],
    most: usize,
    key: impl Fn(&T) -> &str,
    at: &Path<'_>,
    errors: &mut Errors,
    validate: impl FnMut(&T, &Path<'_>, &mut Errors),
) {
    validate_list(list, most, at, errors, validate);
    if list.len() > most {
        return;
    }

    let mut seen = BTreeSet::new();
    for (index, item) in list.iter().enumerate() {
        if !seen.insert(key(item)) {
            let shown = internal::text(key(item));
            errors.push(FieldError::duplicate(&at.index(index), shown));
        }
    }
}

/// Validates the name of a pool: subdomains between slashes.
fn validate_pool_name(name: &str, at: &Path<'_>, errors: &mut Errors) {
    if name.is_empty() {
        return errors.push(FieldError::required(at, ""));
    }
    if name.len() > LONGEST_POOL_NAME {
        errors.push(FieldError::too_long(at, LONGEST_POOL_NAME));
    }

    for part in name.split('/') {
        refuse(at, part, dns1123_subdomain(part), errors);
    }
}

/// Validates the name of a class where something refers to it.
fn validate_class_name(name: &str, at: &Path<'_>, errors: &mut Errors) {
    validate_required(name, dns1123_subdomain, at, errors);
}

/// Validates the name of an attribute or capacity: an identifier, which may have a domain.
fn validate_qualified_name(name: &str, at: &Path<'_>, errors: &mut Errors) {
    let parts: Vec<&str> = name.split('/').collect();
    match parts.as_slice() {
        [identifier] => validate_identifier(identifier, at, errors),
        [domain, identifier] => {
            match *domain {
                "" => errors.push(FieldError::invalid_str(
                    at,
                    "",
                    "the domain must not be empty",
                )),
                domain => validate_driver_name(domain, at, errors),
            }

            match *identifier {
                "" => errors.push(FieldError::invalid_str(
                    at,
                    "",
                    "the name must not be empty",
                )),
                identifier => validate_identifier(identifier, at, errors),
            }
        }
        // Upstream accepts these.
        _ => {}
    }
}

fn validate_identifier(identifier: &str, at: &Path<'_>, errors: &mut Errors) {
    if identifier.len() > LONGEST_IDENTIFIER {
        errors.push(FieldError::too_long(at, LONGEST_IDENTIFIER));
    }

    refuse(at, identifier, c_identifier(identifier), errors);
}

/// As [`validate_qualified_name`], with a domain.
fn validate_fully_qualified_name(name: &str, at: &Path<'_>, errors: &mut Errors) {
    validate_qualified_name(name, at, errors);
    if !name.contains('/') {
        let why = "a fully qualified name must be a domain and a name separated by a slash";
        errors.push(FieldError::invalid_str(at, name, why));
    }
}

/// Validates selectors of devices.
fn validate_selectors(selectors: &[DeviceSelector], at: &Path<'_>, errors: &mut Errors) {
    validate_list(
        selectors,
        MOST_SELECTORS,
        at,
        errors,
        |selector, at, errors| {
            let at = at.field("cel");
            match &selector.cel {
                None => errors.push(FieldError::required(&at, "")),
                Some(cel) => {
                    let at = at.field("expression");
                    errors.extend(device_selector::validate(&cel.expression, &at));
                }
            }
        },
    );
}

/// Validates the configuration of a driver. `stored`: it is unchanged.
fn validate_configuration(
    opaque: Option<&OpaqueDeviceConfiguration>,
    stored: bool,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let at = at.field("opaque");
    let Some(opaque) = opaque else {
        return errors.push(FieldError::required(&at, ""));
    };

    validate_driver_name(&opaque.driver, &at.field("driver"), errors);
    let place = at.field("parameters");
    validate_parameters(&opaque.parameters, stored, &place, errors);
}

/// Validates what only a driver understands: a JSON object.
fn validate_parameters(
    parameters: &RawExtension,
    stored: bool,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let value = &parameters.0;
    if value.is_null() {
        errors.push(FieldError::required(at, ""));
    } else if !stored && value.to_string().len() > LONGEST_PARAMETERS {
        errors.push(FieldError::too_long(at, LONGEST_PARAMETERS));
    } else if !value.is_object() {
        let why = "must be a valid JSON object";
        errors.push(FieldError::invalid_str(at, "<value omitted>", why));
    }
}
