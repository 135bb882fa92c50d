//! References to the pod's own fields and to the resources of its containers, from variables and
//! files.

use coracle_api::Path;
use coracle_api::field_error::{FieldError, refuse};
use coracle_api::names::qualified_name;
use coracle_api::quantity::Quantity;
use k8s_openapi::api::core::v1::{ObjectFieldSelector, ResourceFieldSelector};

use super::{validate_enum, validate_required_enum};
use crate::strategy::Errors;
use crate::validate::text;

/// Fields that environment variables can be set from.
pub(super) const OF_VARIABLES: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// Fields that files can be made from.
pub(super) const OF_FILES: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];

/// Supported field paths of a v1 pod, though not each in every context.
const KNOWN: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

const RESOURCES: &[&str] = &[
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

pub(super) fn validate_field_ref(
    reference: &ObjectFieldSelector,
    allowed: &[&str],
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let (version, path) = (text(&reference.api_version), reference.field_path.as_str());
    if version.is_empty() {
        errors.push(FieldError::required(&at.field("apiVersion"), ""));
        return;
    }

    let place = at.field("fieldPath");
    if path.is_empty() {
        errors.push(FieldError::required(&place, ""));
        return;
    }

    match (version, subscripted(path)) {
        ("v1", Some(("metadata.annotations", key))) => {
            let key = key.to_lowercase();
            refuse(at, &key, qualified_name(&key), errors);
        }
        ("v1", Some(("metadata.labels", key))) => refuse(at, key, qualified_name(key), errors),
        ("v1", None) if KNOWN.contains(&path) => validate_enum(path, allowed, &place, errors),
        // The old name of the field.
        ("v1", None) if path == "spec.host" => {
            validate_enum("spec.nodeName", allowed, &place, errors)
        }
        (version, subscripted) => {
            let why = match (version, subscripted) {
                ("v1", Some(_)) => format!("field label does not support subscript: {path}"),
                ("v1", None) => format!("field label not supported: {path}"),
                (other, _) => format!("unsupported pod version: {other}"),
            };

            errors.push(FieldError::invalid_str(
                &place,
                path,
                format!("error converting fieldPath: {why}"),
            ));
        }
    }
}

/// `metadata.labels['key']` as field and key.
fn subscripted(path: &str) -> Option<(&str, &str)> {
    path.strip_suffix("']")?
        .split_once("['")
        .filter(|(field, _)| !field.is_empty())
}

/// Validates a reference to a container's resource; in files the container must be named.
pub(super) fn validate_resource_field_ref(
    reference: &ResourceFieldSelector,
    of_file: bool,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let name = reference.resource.as_str();
    if of_file && text(&reference.container_name).is_empty() {
        errors.push(FieldError::required(&at.field("containerName"), ""));
    } else if !is_huge_pages(name) {
        validate_required_enum(name, RESOURCES, &at.field("resource"), errors);
    }

    let divisor = reference
        .divisor
        .as_ref()
        .and_then(|divisor| divisor.0.parse::<Quantity>().ok());

    if let Some(divisor) = divisor.filter(|divisor| !divisor.is_zero()) {
        validate_divisor(name, &divisor.to_string(), &at.field("divisor"), errors);
    }
}

fn is_huge_pages(name: &str) -> bool {
    name.starts_with("requests.hugepages-") || name.starts_with("limits.hugepages-")
}

fn validate_divisor(resource: &str, divisor: &str, at: &Path<'_>, errors: &mut Errors) {
    const SIZES: &[&str] = &[
        "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei",
    ];

    let (known, detail) = match resource {
        "limits.cpu" | "requests.cpu" => (
            &["1m", "1"][..],
            "only divisor's values 1m and 1 are supported with the cpu resource",
        ),
        "limits.memory" | "requests.memory" => (
            SIZES,
            "only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the \
             memory resource",
        ),
        "limits.ephemeral-storage" | "requests.ephemeral-storage" => (
            SIZES,
            "only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the \
             local ephemeral storage resource",
        ),
        other if is_huge_pages(other) => (
            SIZES,
            "only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the \
             hugepages resource",
        ),
        _ => return,
    };

    if !known.contains(&divisor) {
        errors.push(FieldError::invalid_str(at, resource, detail));
    }
}
