//! Annotations with a meaning for pods.

use std::collections::BTreeMap;

use coracle_api::Path;
use coracle_api::codec::json;
use coracle_api::field_error::FieldError;
use coracle_api::go_text::Quoted;
use coracle_api::typed;
use k8s_openapi::api::core::v1::{PodSpec, Toleration};

use super::{path, tolerations};
use crate::core::pod::annotation::{
    APP_ARMOR_PREFIX, DELETION_COST, MIRROR, SECCOMP_POD, SECCOMP_PREFIX, TOLERATIONS,
};
use crate::core::pod::options::Options;
use crate::core::pod::validate::every_container;
use crate::strategy::Errors;
use crate::validate::text;

type Annotations = BTreeMap<String, String>;

/// Validates the annotations with a meaning.
pub(super) fn validate_annotations(
    annotations: Option<&Annotations>,
    spec: &PodSpec,
    at: &Path<'_>,
    options: &Options,
    errors: &mut Errors,
) {
    let Some(annotations) = annotations else {
        return;
    };
    if let Some(value) = annotations.get(MIRROR)
        && text(&spec.node_name).is_empty()
    {
        let detail = "must set spec.nodeName if mirror pod annotation is set";
        errors.push(FieldError::invalid_str(&at.key(MIRROR), value, detail));
    }

    if let Some(value) = annotations
        .get(TOLERATIONS)
        .filter(|value| !value.is_empty())
    {
        validate_tolerations(value, at, options, errors);
    }

    if let Some(value) = annotations.get(DELETION_COST)
        && !options.any_deletion_cost
        && deletion_cost(value).is_none()
    {
        errors.push(FieldError::invalid_str(
            &at.key(DELETION_COST),
            value,
            "must be a 32bit integer",
        ));
    }

    if let Some(profile) = annotations.get(SECCOMP_POD) {
        validate_seccomp(profile, &at.field(SECCOMP_POD), errors);
    }

    for (key, profile) in annotations
        .iter()
        .filter(|(key, _)| key.starts_with(SECCOMP_PREFIX))
    {
        validate_seccomp(profile, &at.field(key), errors);
    }

    for (key, profile) in annotations {
        if let Some(container) = key.strip_prefix(APP_ARMOR_PREFIX) {
            validate_app_armor(container, profile, spec, &at.key(key), errors);
        }
    }
}

/// The value of the pod deletion cost annotation: a number without plus sign or leading zeros.
pub(in crate::core::pod) fn deletion_cost(text: &str) -> Option<i32> {
    let canonical =
        text == "0" || text.starts_with(|first: char| first == '-' || ('1'..='9').contains(&first));
    canonical.then(|| text.parse().ok()).flatten()
}

fn validate_tolerations(value: &str, at: &Path<'_>, options: &Options, errors: &mut Errors) {
    let read = json::parse(value.as_bytes()).map_err(|error| error.to_string());
    let read = read.and_then(|tree| {
        typed::from_tree::<Vec<Toleration>>(&tree).map_err(|error| error.to_string())
    });
    match read {
        Ok(given) => {
            tolerations::validate_tolerations(&given, &at.field(TOLERATIONS), options, errors)
        }
        Err(error) => errors.push(FieldError::invalid_str(at, TOLERATIONS, error)),
    }
}

fn validate_seccomp(profile: &str, at: &Path<'_>, errors: &mut Errors) {
    match profile.strip_prefix("localhost/") {
        Some(file) => path::validate_descending_path(file, at, errors),
        None if matches!(profile, "runtime/default" | "docker/default" | "unconfined") => {}
        None => errors.push(FieldError::invalid_str(
            at,
            profile,
            "must be a valid seccomp profile",
        )),
    }
}

fn validate_app_armor(
    container: &str,
    profile: &str,
    spec: &PodSpec,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let mut found = false;
    every_container(spec, &Path::Root, |candidate, _| {
        found |= candidate.name == container
    });

    if !found {
        errors.push(FieldError::invalid_str(
            at,
            container,
            "container not found",
        ));
    }

    if !matches!(profile, "" | "runtime/default" | "unconfined")
        && !profile.starts_with("localhost/")
    {
        let detail = format!("invalid AppArmor profile name: {}", Quoted(profile));
        errors.push(FieldError::invalid_str(at, profile, detail));
    }
}

/// Validates that immutable annotations do not change.
pub(in crate::core::pod) fn validate_annotations_update(
    new: Option<&Annotations>,
    old: Option<&Annotations>,
    spec: &PodSpec,
    options: &Options,
    errors: &mut Errors,
) {
    let metadata = Path::Root.field("metadata");
    let at = metadata.field("annotations");
    let none = Annotations::new();

    let (given, before) = (new.unwrap_or(&none), old.unwrap_or(&none));
    for (key, _) in before
        .iter()
        .filter(|(key, value)| given.get(*key) != Some(value))
    {
        if key.starts_with(APP_ARMOR_PREFIX) {
            errors.push(FieldError::forbidden(
                &at.key(key),
                "may not remove or update AppArmor annotations",
            ));
        }

        if key == MIRROR {
            errors.push(FieldError::forbidden(
                &at.key(key),
                "may not remove or update mirror pod annotation",
            ));
        }
    }

    for key in given.keys().filter(|key| !before.contains_key(*key)) {
        if key.starts_with(APP_ARMOR_PREFIX) {
            errors.push(FieldError::forbidden(
                &at.key(key),
                "may not add AppArmor annotations",
            ));
        }

        if key == MIRROR {
            errors.push(FieldError::forbidden(
                &at.key(key),
                "may not add mirror pod annotation",
            ));
        }
    }

    validate_annotations(new, spec, &at, options, errors);
}
