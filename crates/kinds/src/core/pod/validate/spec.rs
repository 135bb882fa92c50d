//! The spec as a whole.

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::names::{dns1123_label, dns1123_subdomain};
use coracle_api::{Path, meta};
use k8s_openapi::api::core::v1::PodSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{
    Frame, affinity, claims, container, dns, host, os, resources, scheduling, security, spread,
    tolerations, validate_range, validate_required_enum, volume,
};
use crate::core::pod::options::Options;
use crate::strategy::Errors;
use crate::validate::{items, text};

/// Validates a spec. `metadata` is given for a pod, whose name becomes part of other names.
pub(in crate::core::pod) fn validate_spec(
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

    let volumes = volume::validate_volumes(
        items(&spec.volumes),
        metadata,
        &at.field("volumes"),
        options,
        errors,
    );
    let frame = Frame::new(spec, options, volumes);

    claims::validate_claims(
        metadata,
        items(&spec.resource_claims),
        &at.field("resourceClaims"),
        errors,
    );

    container::validate_all_containers(&frame, at, errors);
    resources::validate_pod_resources(&frame, at, errors);
    host::validate_host_network_ports(&frame, at, errors);
    validate_required_enum(
        text(&spec.restart_policy),
        &["Always", "OnFailure", "Never"],
        &at.field("restartPolicy"),
        errors,
    );

    validate_required_enum(
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

    security::validate_pod_security_context(&frame, &at.field("securityContext"), errors);
    affinity::validate_affinity(
        spec.affinity.as_ref(),
        &at.field("affinity"),
        options,
        errors,
    );

    dns::validate_dns_config(
        spec.dns_config.as_ref(),
        text(&spec.dns_policy),
        &at.field("dnsConfig"),
        errors,
    );

    scheduling::validate_readiness_gates(
        items(&spec.readiness_gates),
        &at.field("readinessGates"),
        errors,
    );

    scheduling::validate_scheduling_gates(
        items(&spec.scheduling_gates),
        &at.field("schedulingGates"),
        errors,
    );

    let place = at.field("topologySpreadConstraints");
    spread::validate_spread_constraints(
        items(&spec.topology_spread_constraints),
        &place,
        options,
        errors,
    );

    os::validate_host_processes(&frame, at, errors);
    host::validate_host_users(&frame, at, errors);
    host::validate_hostname_override(spec, at, errors);

    validate_names(spec, at, errors);
    tolerations::validate_tolerations(
        items(&spec.tolerations),
        &at.field("tolerations"),
        options,
        errors,
    );

    host::validate_host_aliases(items(&spec.host_aliases), &at.field("hostAliases"), errors);
    validate_classes(spec, &frame, at, errors);
    os::validate_os(spec, at, errors);
    container::validate_env_files(spec, at, errors);
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
        validate_range(
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
        validate_required_enum(found, &known, &at.field("preemptionPolicy"), errors);
    }

    if let Some(overhead) = &spec.overhead {
        resources::validate_overhead(overhead, &at.field("overhead"), frame.options, errors);
    }
}
