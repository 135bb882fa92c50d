//! Warnings about single containers.

use std::collections::BTreeSet;

use coracle_api::Path;
use coracle_api::go_text::Quoted;
use k8s_openapi::api::core::v1::{AppArmorProfile, Container, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::super::annotation::{APP_ARMOR_PREFIX, SECCOMP_POD, SECCOMP_PREFIX};
use super::super::shape::profile_of;
use super::super::validate::every_container;
use super::warn_fractions;
use crate::validate::{items, text};
use crate::warnings::Gathered;

/// `place` is the path of the spec, `noted` that of the annotations.
pub(super) fn containers(
    spec: &PodSpec,
    metadata: &ObjectMeta,
    place: &Path<'_>,
    noted: &Path<'_>,
    is_template: bool,
    warnings: &mut Gathered,
) {
    let annotation = |key: &str| {
        metadata
            .annotations
            .as_ref()
            .and_then(|annotations| annotations.get(key))
    };

    let of_pod = spec.security_context.as_ref();
    let seccomp = "non-functional in v1.27+; use the \"seccompProfile\" field instead";
    if of_pod.is_none_or(|context| context.seccomp_profile.is_none())
        && annotation(SECCOMP_POD).is_some()
    {
        warnings.push(format!("{}: {seccomp}", noted.key(SECCOMP_POD)));
    }

    let of_pod: Option<&AppArmorProfile> =
        of_pod.and_then(|context| context.app_armor_profile.as_ref());
    every_container(spec, place, |container, at| {
        let context = container.security_context.as_ref();
        let key = format!("{SECCOMP_PREFIX}{}", container.name);
        if context.is_none_or(|context| context.seccomp_profile.is_none())
            && annotation(&key).is_some()
        {
            warnings.push(format!("{}: {seccomp}", noted.key(&key)));
        }

        let key = format!("{APP_ARMOR_PREFIX}{}", container.name);

        // For pods this warning is returned before the annotation becomes a field.
        let unset =
            is_template && context.is_none_or(|context| context.app_armor_profile.is_none());
        if let Some(value) = annotation(&key).filter(|_| unset)
            && (of_pod.is_none() || profile_of(value).as_ref() != of_pod)
        {
            let message = "deprecated since v1.30; use the \"appArmorProfile\" field instead";
            warnings.push(format!("{}: {message}", noted.key(&key)));
        }

        let resources = container.resources.as_ref();
        let (limits, requests) = (
            resources.and_then(|resources| resources.limits.as_ref()),
            resources.and_then(|resources| resources.requests.as_ref()),
        );

        let at_resources = at.field("resources");
        for name in ["memory", "ephemeral-storage"] {
            warn_fractions(limits, &[name], &at_resources.field("limits"), warnings);
            warn_fractions(requests, &[name], &at_resources.field("requests"), warnings);
        }

        warn_hidden_variables(container, &at.field("env"), warnings);
    });
}

/// Warns about variables that replace others of the same name.
fn warn_hidden_variables(container: &Container, at: &Path<'_>, warnings: &mut Gathered) {
    let mut seen = BTreeSet::new();
    for (index, variable) in items(&container.env).iter().enumerate() {
        if seen.insert(&variable.name) {
            continue;
        }

        let (value, reference) = (text(&variable.value), format!("$({})", variable.name));
        if variable.value_from.is_some() || value == reference || !value.contains(&reference) {
            let name = Quoted(&variable.name);
            warnings.push(format!(
                "{}: hides previous definition of {name}, which may be dropped when using apply",
                at.index(index)
            ));
        }
    }
}
