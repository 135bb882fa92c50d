//! Validates static pod manifests: what the API server would reject is rejected here.
//!
//! The API server validates all of a pod; this validates what a node depends on: names, and an
//! image per container. Static pods must not reference API objects, because they run without the
//! API.

use std::collections::BTreeSet;

use coracle_api::field_error::{FieldError, FieldErrors};
use coracle_api::go_text::Quoted;
use coracle_api::names::{self, Rule};
use coracle_api::value::Path;
use k8s_openapi::api::core::v1::{Container, Pod};

use crate::pod::PodView as _;
use crate::references::names as referred;

/// Validates a pod.
pub(super) fn validate(pod: &Pod) -> FieldErrors {
    let mut errors = FieldErrors::default();
    let root = Path::Root;
    let metadata = root.field("metadata");

    let own = pod.metadata.name.as_deref().unwrap_or_default();
    validate_name(
        &metadata.field("name"),
        own,
        names::dns1123_subdomain,
        &mut errors,
    );

    validate_name(
        &metadata.field("namespace"),
        pod.namespace(),
        names::dns1123_label,
        &mut errors,
    );

    let (spec, pod_spec) = (root.field("spec"), pod.pod_spec());
    if pod_spec.containers.is_empty() {
        errors.push(FieldError::required(&spec.field("containers"), ""));
    }

    let mut seen = BTreeSet::new();
    validate_containers(
        &spec.field("containers"),
        &pod_spec.containers,
        &mut seen,
        &mut errors,
    );

    let init = pod_spec.init_containers.as_deref().unwrap_or_default();
    validate_containers(&spec.field("initContainers"), init, &mut seen, &mut errors);

    errors
}

fn validate_containers<'a>(
    path: &Path<'_>,
    all: &'a [Container],
    seen: &mut BTreeSet<&'a str>,
    errors: &mut FieldErrors,
) {
    for (index, container) in all.iter().enumerate() {
        let path = path.index(index);
        validate_name(
            &path.field("name"),
            &container.name,
            names::dns1123_label,
            errors,
        );

        if !container.name.is_empty() && !seen.insert(&container.name) {
            errors.push(FieldError::duplicate(
                &path.field("name"),
                Quoted(&container.name).to_string(),
            ));
        }

        let image = container.image.as_deref().unwrap_or_default();
        if image.is_empty() {
            errors.push(FieldError::required(&path.field("image"), ""));
        } else if image.trim() != image {
            let detail = "must not have leading or trailing whitespace";
            errors.push(FieldError::invalid_str(&path.field("image"), image, detail));
        }
    }
}

fn validate_name(path: &Path<'_>, name: &str, rule: Rule, errors: &mut FieldErrors) {
    if name.is_empty() {
        return errors.push(FieldError::required(path, ""));
    }
    errors.extend(
        rule(name)
            .into_iter()
            .map(|detail| FieldError::invalid_str(path, name, detail)),
    );
}

/// The kind of API object that a pod references, if any.
pub(super) fn api_object(pod: &Pod) -> Option<&'static str> {
    let spec = pod.pod_spec();
    let is_named = |name: &Option<String>| name.as_deref().is_some_and(|name| !name.is_empty());

    let mut volumes = spec.volumes.iter().flatten();
    [
        (is_named(&spec.service_account_name), "serviceaccounts"),
        (!referred::secrets(pod).is_empty(), "secrets"),
        (!referred::config_maps(pod).is_empty(), "configmaps"),
        (
            spec.resource_claims.iter().flatten().next().is_some(),
            "resourceclaims",
        ),
        (
            volumes.any(|volume| volume.persistent_volume_claim.is_some()),
            "persistentvolumeclaims",
        ),
    ]
    .into_iter()
    .find_map(|(is_there, what)| is_there.then_some(what))
}
