//! `pods/status`: what the kubelet and the scheduler write about a pod.

mod containers;
mod devices;
mod restarts;

use std::collections::{BTreeMap, VecDeque};

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::names::{dns1123_subdomain, qualified_name};
use coracle_api::{Path, Value, ip};
use k8s_openapi::api::core::v1::{Pod, PodCondition, PodSpec, PodStatus};

use crate::strategy::Errors;
use crate::validate::internal::{self, list, object};
use crate::validate::{items, text};

const STATUS: Path<'static> = Path::Field(&Path::Root, "status");

/// Prepares the write: owner references are carried over, and so is what is not explicitly cleared.
pub(super) fn shape(new: &mut Value, old: &Value) {
    let owners = old.at(&["metadata", "ownerReferences"]).cloned();
    let mut metadata = new.meta_mut();
    match owners {
        Some(owners) => metadata.members().insert("ownerReferences", owners),
        None => metadata.members().remove("ownerReferences"),
    };

    let class = old.at(&["status", "qosClass"]).cloned();
    let seen = old.at(&["status", "observedGeneration"]).cloned();
    let Some(pod) = new.as_object_mut() else {
        return;
    };
    let status = pod.object_mut("status");

    // Old kubelets leave it out when they reject a pod.
    if let Some(class) = class.filter(|_| status.str("qosClass").unwrap_or_default().is_empty()) {
        status.insert("qosClass", class);
    }

    if let Some(seen) = seen.filter(|_| is_unseen(status.get("observedGeneration"))) {
        status.insert("observedGeneration", seen);
    }

    let before = old.at(&["status", "conditions"]).and_then(Value::as_array);
    let mut by_type: BTreeMap<&str, VecDeque<&Value>> = BTreeMap::new();
    for condition in before.into_iter().flatten() {
        let of = condition
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        by_type.entry(of).or_default().push_back(condition);
    }

    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
    {
        // A type may occur several times: they are matched in order.
        let of = condition.str("type").unwrap_or_default();
        let Some(old) = by_type.get_mut(of).and_then(VecDeque::pop_front) else {
            continue;
        };
        if let Some(seen) = old
            .get("observedGeneration")
            .filter(|_| is_unseen(condition.get("observedGeneration")))
        {
            condition.insert("observedGeneration", seen.clone());
        }
    }
}

fn is_unseen(generation: Option<&Value>) -> bool {
    generation.and_then(Value::as_int).unwrap_or(0) == 0
}

/// Validates the change of a status, after that of annotations.
pub(super) fn validate_update(new: &Pod, old: &Pod, errors: &mut Errors) {
    let none = (PodSpec::default(), PodStatus::default());
    let (spec, before) = (
        new.spec.as_ref().unwrap_or(&none.0),
        old.spec.as_ref().unwrap_or(&none.0),
    );

    let (status, was) = (
        new.status.as_ref().unwrap_or(&none.1),
        old.status.as_ref().unwrap_or(&none.1),
    );

    validate_conditions(
        items(&status.conditions),
        &STATUS.field("conditions"),
        errors,
    );

    validate_nomination(status, was, text(&before.node_name), errors);

    if let Some(generation) = status
        .observed_generation
        .filter(|generation| *generation < 0)
    {
        let at = STATUS.field("observedGeneration");
        errors.push(FieldError::invalid(
            &at,
            generation.to_string(),
            "must be a non-negative integer",
        ));
    }

    if text(&status.qos_class) != text(&was.qos_class) {
        let at = STATUS.field("qosClass");
        errors.push(FieldError::invalid_str(
            &at,
            text(&status.qos_class),
            "field is immutable",
        ));
    }

    restarts::validate_transitions(status, was, before, errors);
    devices::validate_claims(status, spec, errors);
    validate_ips(
        &pod_ips(status),
        &pod_ips(was),
        &STATUS.field("podIPs"),
        errors,
    );

    let found = host_ips(status);
    let at = STATUS.field("hostIPs");
    if let Some(first) = found
        .first()
        .filter(|first| *first != text(&status.host_ip))
    {
        let detail = "must be equal to `hostIP`";
        errors.push(FieldError::invalid_str(
            &at.index(0).field("ip"),
            first,
            detail,
        ));
    }

    validate_ips(&found, &host_ips(was), &at, errors);
    containers::validate_statuses(status, spec, errors);
}

fn validate_conditions(conditions: &[PodCondition], at: &Path<'_>, errors: &mut Errors) {
    for (index, condition) in conditions.iter().enumerate() {
        let at = at.index(index);
        if let Some(generation) = condition
            .observed_generation
            .filter(|generation| *generation < 0)
        {
            let place = at.field("observedGeneration");
            errors.push(FieldError::invalid(
                &place,
                generation.to_string(),
                "must be a non-negative integer",
            ));
        }

        let of = condition.type_.as_str();
        if !matches!(of, "PodScheduled" | "Ready" | "Initialized") {
            refuse(&at.field("Type"), of, qualified_name(of), errors);
        }
    }
}

fn validate_nomination(status: &PodStatus, was: &PodStatus, node: &str, errors: &mut Errors) {
    let at = STATUS.field("nominatedNodeName");
    let name = text(&status.nominated_node_name);
    if name.is_empty() || name == text(&was.nominated_node_name) {
        return;
    }

    refuse(&at, name, dns1123_subdomain(name), errors);

    if !node.is_empty() {
        errors.push(FieldError::forbidden(
            &at,
            "may not be set on pods that are already bound to a node",
        ));
    }
}

/// Validates addresses: old ones may stay as they are, and there is at most one of each family.
fn validate_ips(found: &[String], known: &[String], at: &Path<'_>, errors: &mut Errors) {
    for (index, address) in found.iter().enumerate() {
        ip::check(address, known, &at.index(index), errors);
    }

    if found.len() < 2 {
        return;
    }

    let mut families = Vec::new();
    for address in found {
        match ip::parse(address) {
            Some(address) => families.push(address.is_ipv6()),
            None => {
                let detail =
                    format!("failed to check for dual stack with error:ip {address} is invalid");
                errors.push(FieldError::internal(at, detail));
                families.clear();
                break;
            }
        }
    }

    if !(families.contains(&true) && families.contains(&false)) || found.len() > 2 {
        let shown = list(found.iter().map(|ip| object(&[("IP", internal::text(ip))])));
        let detail = "may specify no more than one IP for each IP family";
        errors.push(FieldError::invalid(at, shown, detail));
    }
}

/// Warnings about addresses that are not canonical.
pub(super) fn warnings(pod: &Pod) -> Vec<String> {
    let Some(status) = &pod.status else {
        return Vec::new();
    };
    let of_pod = pod_ips(status)
        .into_iter()
        .enumerate()
        .map(|(index, ip)| ("podIPs", index, ip));

    let of_host = host_ips(status)
        .into_iter()
        .enumerate()
        .map(|(index, ip)| ("hostIPs", index, ip));

    let warning = |(list, index, address): (&str, usize, String)| {
        ip::warning(&address, &STATUS.field(list).index(index).field("ip"))
    };

    of_pod.chain(of_host).filter_map(warning).collect()
}

fn pod_ips(status: &PodStatus) -> Vec<String> {
    items(&status.pod_ips)
        .iter()
        .map(|ip| ip.ip.clone())
        .collect()
}

fn host_ips(status: &PodStatus) -> Vec<String> {
    items(&status.host_ips)
        .iter()
        .map(|ip| ip.ip.clone())
        .collect()
}
