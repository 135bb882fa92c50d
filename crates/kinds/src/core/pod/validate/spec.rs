//! The spec as a whole.

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::names::{dns1123_label, dns1123_subdomain};
use coracle_api::{Path, meta};
use k8s_openapi::api::core::v1::PodSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{
    Frame, affinity, between, claims, container, dns, host, os, required_word, resources,
    scheduling, security, spread, tolerations, volume,
};
use crate::core::pod::options::Options;
use crate::strategy::Errors;
use crate::validate::{items, text};

/// Validates a spec. `metadata` is given for a pod, whose name becomes part of other names.
pub(in crate::core::pod) fn spec(
    spec: &PodSpec,
    metadata: Option<&ObjectMeta>,
    at: &Path<'_>,
    options: &Options,
    errors: &mut Errors,
) {
    if spec.termination_grace_period_seconds.is_none() {
        errors.push(FieldError::required(
            &at.field("terminationGracePeriodSeconds"),
            "",
        ));
    }

    let volumes = volume::volumes(
        items(&spec.volumes),
        metadata,
        &at.field("volumes"),
        options,
        errors,
    );
    let frame = Frame::new(spec, options, volumes);

    claims::claims(
        metadata,
        items(&spec.resource_claims),
        &at.field("resourceClaims"),
        errors,
    );

    container::all(&frame, at, errors);
    resources::of_pod(&frame, at, errors);
    host::ports_of_host_network(&frame, at, errors);
    required_word(
        text(&spec.restart_policy),
        &["Always", "OnFailure", "Never"],
        &at.field("restartPolicy"),
        errors,
    );

    required_word(
        text(&spec.dns_policy),
        &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"],
        &at.field("dnsPolicy"),
        errors,
    );

    meta::validate::labels(
        spec.node_selector.iter().flatten(),
        &at.field("nodeSelector"),
        errors,
    );

    security::of_pod(&frame, &at.field("securityContext"), errors);
    affinity::affinity(
        spec.affinity.as_ref(),
        &at.field("affinity"),
        options,
        errors,
    );

    dns::config(
        spec.dns_config.as_ref(),
        text(&spec.dns_policy),
        &at.field("dnsConfig"),
        errors,
    );

    scheduling::readiness_gates(
        items(&spec.readiness_gates),
        &at.field("readinessGates"),
        errors,
    );

    scheduling::gates(
        items(&spec.scheduling_gates),
        &at.field("schedulingGates"),
        errors,
    );

    let place = at.field("topologySpreadConstraints");
    spread::constraints(
        items(&spec.topology_spread_constraints),
        &place,
        options,
        errors,
    );

    os::host_processes(&frame, at, errors);
    host::users(&frame, at, errors);
    host::name_override(spec, at, errors);

    validate_names(spec, at, errors);
    tolerations::tolerations(
        items(&spec.tolerations),
        &at.field("tolerations"),
        options,
        errors,
    );

    host::aliases(items(&spec.host_aliases), &at.field("hostAliases"), errors);
    validate_classes(spec, &frame, at, errors);
    os::os(spec, at, errors);
    container::files_of_variables(spec, at, errors);
}

/// Validates the names of other objects, and the host name of the pod.
fn validate_names(spec: &PodSpec, at: &Path<'_>, errors: &mut Errors) {
    for (found, name) in [
        (&spec.service_account_name, "serviceAccountName"),
        (&spec.node_name, "nodeName"),
    ] {
        if let Some(found) = found.as_deref().filter(|found| !found.is_empty()) {
            refuse(&at.field(name), found, dns1123_subdomain(found), errors);
        }
    }

    if let Some(seconds) = spec.active_deadline_seconds {
        between(
            seconds,
            1,
            i32::MAX.into(),
            &at.field("activeDeadlineSeconds"),
            errors,
        );
    }

    for (found, name) in [(&spec.hostname, "hostname"), (&spec.subdomain, "subdomain")] {
        if let Some(found) = found.as_deref().filter(|found| !found.is_empty()) {
            refuse(&at.field(name), found, dns1123_label(found), errors);
        }
    }
}

/// Validates the runtime and priority classes, and what comes with them.
fn validate_classes(spec: &PodSpec, frame: &Frame<'_>, at: &Path<'_>, errors: &mut Errors) {
    if let Some(found) = spec
        .priority_class_name
        .as_deref()
        .filter(|found| !found.is_empty())
    {
        refuse(
            &at.field("priorityClassName"),
            found,
            dns1123_subdomain(found),
            errors,
        );
    }

    if let Some(found) = &spec.runtime_class_name {
        refuse(
            &at.field("runtimeClassName"),
            found,
            dns1123_subdomain(found),
            errors,
        );
    }

    if let Some(found) = &spec.preemption_policy {
        let known = ["PreemptLowerPriority", "Never"];
        required_word(found, &known, &at.field("preemptionPolicy"), errors);
    }

    if let Some(overhead) = &spec.overhead {
        resources::overhead(overhead, &at.field("overhead"), frame.options, errors);
    }
}
