//! Names and amounts of resources.

use coracle_api::field_error::{FieldError, as_json, refuse};
use coracle_api::quantity::Quantity;
use coracle_api::{Path, Value, names, resource_name};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Written;

use crate::strategy::Errors;

/// Validates a name that is known, or has a domain.
pub(crate) fn validate_resource_name(name: &str, at: &Path<'_>, errors: &mut Errors) {
    let messages = names::qualified_name(name);
    let readable = messages.is_empty();
    refuse(at, name, messages, errors);
    if readable && !name.contains('/') && !resource_name::is_known(name) {
        let detail = "must be a standard resource type or fully qualified";
        errors.push(FieldError::invalid_str(at, name, detail));
    }
}

/// Validates a name that a container may request.
pub(crate) fn validate_container_resource_name(found: &str, at: &Path<'_>, errors: &mut Errors) {
    validate_resource_name(found, at, errors);
    if !found.contains('/') {
        if !resource_name::is_known_to_containers(found) {
            let detail = "must be a standard resource for containers";
            errors.push(FieldError::invalid_str(at, found, detail));
        }
    } else if !resource_name::is_native(found) && !resource_name::is_extended(found) {
        let detail = "doesn't follow extended resource name standard";
        errors.push(FieldError::invalid_str(at, found, detail));
    }
}

/// Validates a name that a quota may bound.
pub(crate) fn validate_quota_resource_name(found: &str, at: &Path<'_>, errors: &mut Errors) {
    validate_resource_name(found, at, errors);
    if !found.contains('/') && !resource_name::is_known_to_quotas(found) {
        errors.push(FieldError::invalid_str(
            at,
            found,
            "must be a standard resource for quota",
        ));
    }
}

/// Validates the amount of a resource: at least zero, and whole where the resource is.
pub(crate) fn validate_resource_amount(
    name: &str,
    found: &Written,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let quantity = read(found);
    if quantity.signum() < 0 {
        errors.push(FieldError::invalid(
            at,
            shown(&quantity),
            "must be greater than or equal to 0",
        ));
    }

    if resource_name::is_whole(name) && quantity.milli_value() % 1000 != 0 {
        errors.push(FieldError::invalid(
            at,
            shown(&quantity),
            "must be an integer",
        ));
    }
}

/// A quantity that was readable when the object was decoded.
pub(crate) fn read(written: &Written) -> Quantity {
    written.0.parse().unwrap_or_default()
}

/// A quantity as errors show it.
pub(crate) fn shown(quantity: &Quantity) -> String {
    as_json(&Value::string(quantity.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate::check_causes;

    type Validate = fn(&str, &Path<'_>, &mut Errors);

    #[test]
    fn resource_names_depend_on_where_they_are_used() {
        let check = |validate: Validate, name: &str, expected: &[&str]| {
            let mut errors = Errors::new();
            validate(name, &Path::Root.field("r"), &mut errors);
            check_causes(&errors, expected);
        };

        check(validate_resource_name, "cpu", &[]);
        check(validate_resource_name, "example.com/gpu", &[]);
        check(
            validate_resource_name,
            "gpu",
            &["r: Invalid value: \"gpu\": must be a standard resource type or fully qualified"],
        );

        check(
            validate_resource_name,
            "a b",
            &["r: Invalid value: \"a b\": name part must consist"],
        );

        check(validate_container_resource_name, "hugepages-2Mi", &[]);
        check(
            validate_container_resource_name,
            "pods",
            &["r: Invalid value: \"pods\": must be a standard resource for containers"],
        );

        check(
            validate_container_resource_name,
            "requests.example.com/gpu",
            &[
                "r: Invalid value: \"requests.example.com/gpu\": doesn't follow extended resource name standard",
            ],
        );

        check(validate_quota_resource_name, "requests.cpu", &[]);
        check(
            validate_quota_resource_name,
            "storage",
            &["r: Invalid value: \"storage\": must be a standard resource for quota"],
        );
    }

    #[test]
    fn amounts_are_not_negative_and_counts_are_whole() {
        let check = |name: &str, found: &str, expected: &[&str]| {
            let mut errors = Errors::new();
            validate_resource_amount(
                name,
                &Written(found.to_owned()),
                &Path::Root.field("r"),
                &mut errors,
            );
            check_causes(&errors, expected);
        };

        check("cpu", "100m", &[]);
        check(
            "cpu",
            "-1",
            &["r: Invalid value: \"-1\": must be greater than or equal to 0"],
        );

        check(
            "pods",
            "1500m",
            &["r: Invalid value: \"1500m\": must be an integer"],
        );

        check(
            "example.com/gpu",
            "500m",
            &["r: Invalid value: \"500m\": must be an integer"],
        );
    }
}
