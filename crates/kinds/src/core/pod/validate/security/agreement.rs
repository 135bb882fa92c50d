//! Annotations and fields for the same profile must agree where both are given.

use coracle_api::Path;
use coracle_api::field_error::FieldError;
use k8s_openapi::api::core::v1::{AppArmorProfile, PodSpec, SeccompProfile};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::super::every_container;
use crate::core::pod::annotation::{APP_ARMOR_PREFIX, SECCOMP_POD, SECCOMP_PREFIX};
use crate::strategy::Errors;

pub(in crate::core::pod::validate) fn validate_annotations_agree(
    metadata: &ObjectMeta,
    spec: &PodSpec,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let Some(annotations) = &metadata.annotations else {
        return;
    };

    let of_pod = spec.security_context.as_ref();
    if let Some(profile) = of_pod.and_then(|context| context.seccomp_profile.as_ref())
        && let Some(annotation) = annotations.get(SECCOMP_POD)
    {
        let place = at.field("securityContext");
        validate_seccomp(annotation, profile, &place.field("seccompProfile"), errors);
    }

    every_container(spec, at, |container, at| {
        let profile = container
            .security_context
            .as_ref()
            .and_then(|context| context.seccomp_profile.as_ref());

        let annotation = annotations.get(&format!("{SECCOMP_PREFIX}{}", container.name));
        if let (Some(profile), Some(annotation)) = (profile, annotation) {
            let place = at.field("securityContext");
            validate_seccomp(annotation, profile, &place.field("seccompProfile"), errors);
        }
    });

    if spec.os.as_ref().is_some_and(|os| os.name == "windows") {
        return;
    }

    let of_pod = of_pod.and_then(|context| context.app_armor_profile.as_ref());
    every_container(spec, at, |container, at| {
        let own = container
            .security_context
            .as_ref()
            .and_then(|context| context.app_armor_profile.as_ref());

        let annotation = annotations.get(&format!("{APP_ARMOR_PREFIX}{}", container.name));
        if let (Some(profile), Some(annotation)) = (own.or(of_pod), annotation) {
            let place = at.field("securityContext");
            validate_app_armor(annotation, profile, &place.field("appArmorProfile"), errors);
        }
    });
}

fn validate_seccomp(
    annotation: &str,
    profile: &SeccompProfile,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let agree = match profile.type_.as_str() {
        "Unconfined" => annotation == "unconfined",
        "RuntimeDefault" => matches!(annotation, "runtime/default" | "docker/default"),
        "Localhost" => annotation.starts_with("localhost/"),
        _ => true,
    };

    let file = profile.localhost_profile.as_deref();
    refuse_disagreement(
        "seccomp",
        &profile.type_,
        agree,
        annotation,
        file,
        at,
        errors,
    );
}

fn validate_app_armor(
    annotation: &str,
    profile: &AppArmorProfile,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let agree = match profile.type_.as_str() {
        "Unconfined" => annotation == "unconfined",
        "RuntimeDefault" => annotation == "runtime/default",
        "Localhost" => annotation.starts_with("localhost/"),
        _ => true,
    };

    let file = profile.localhost_profile.as_deref();
    refuse_disagreement(
        "apparmor",
        &profile.type_,
        agree,
        annotation,
        file,
        at,
        errors,
    );
}

/// The error for types that differ, or for files that differ where the types are the same.
fn refuse_disagreement(
    what: &str,
    of: &str,
    agree: bool,
    annotation: &str,
    file: Option<&str>,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    if !agree {
        let detail = format!("{what} type in annotation and field must match");
        errors.push(FieldError::forbidden(&at.field("type"), detail));
    } else if of == "Localhost" && annotation.strip_prefix("localhost/") != file {
        let detail = format!("{what} profile in annotation and field must match");
        errors.push(FieldError::forbidden(&at.field("localhostProfile"), detail));
    }
}
