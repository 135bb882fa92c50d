//! Computes the status of a pod.
//!
//! [`pod_status`] gets the pod, its state in the runtime, the probe results, the previous status
//! and the current errors, and computes first the container statuses ([`containers`]), then the
//! [`phase`], then the [`conditions`]. [`merge`] combines it with what others have written.

mod conditions;
mod containers;
pub mod merge;
mod phase;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::IpAddr;

use coracle_api::time::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, HostIP, Pod, PodIP, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff;

use crate::actions::ProbeVerdicts;
use crate::observed::Observed;
use crate::pod::PodView;
use crate::qos::Class;
pub(crate) use containers::lost;

/// Why a container that should run does not: its waiting state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// `CrashLoopBackOff`, `ErrImagePull`, …
    pub reason: &'static str,
    pub message: String,
}

/// The inputs of a status.
pub struct StatusInputs<'a> {
    pub pod: &'a Pod,
    pub observed: &'a Observed,
    pub verdicts: &'a ProbeVerdicts,
    /// The previous status; the API's for a pod seen for the first time.
    pub before: &'a PodStatus,
    /// Waiting states by container name.
    pub waiting: &'a BTreeMap<String, Waiting>,
    pub host_addresses: &'a [IpAddr],
    /// The pod is finished: nothing in it is started again.
    pub is_finished: bool,
    /// Why the pod failed, e.g. by eviction: reason and message.
    pub failed: Option<(&'a str, &'a str)>,
    /// Prefix of container IDs.
    pub runtime: &'a str,
    pub now: Timestamp,
}

/// Computes the status of a pod. Pure.
pub fn pod_status(inputs: &StatusInputs<'_>) -> PodStatus {
    let StatusInputs { pod, before, .. } = inputs;
    let mut status = PodStatus {
        container_statuses: containers::main(inputs),
        init_container_statuses: containers::init(inputs),
        ephemeral_container_statuses: containers::ephemeral(inputs),
        qos_class: Some(Class::of(pod).as_str().to_owned()),
        observed_generation: pod.metadata.generation,
        nominated_node_name: pod.pod_status().nominated_node_name.clone(),
        resource_claim_statuses: pod.pod_status().resource_claim_statuses.clone(),
        start_time: before
            .start_time
            .clone()
            .or_else(|| pod.pod_status().start_time.clone()),
        ..PodStatus::default()
    };
    status.start_time.get_or_insert_with(|| time(inputs.now));

    addresses(inputs, &mut status);
    let of_server = pod.pod_status();
    let phase = phase::of(inputs, &status);

    // A terminal phase is final.
    let ended = [before, of_server]
        .into_iter()
        .find(|status| is_terminal(status.phase.as_deref()));
    let ended = ended
        .filter(|_| !is_terminal(Some(phase)))
        .and_then(|status| status.phase.clone());

    let phase = ended.unwrap_or_else(|| phase.to_owned());
    if before.phase.as_deref() == Some(&phase) {
        status.reason = before.reason.clone().or_else(|| of_server.reason.clone());
        status.message = before.message.clone().or_else(|| of_server.message.clone());
    }

    status.phase = Some(phase);

    if let Some((reason, message)) = inputs.failed {
        status.phase = Some("Failed".to_owned());
        status.reason = Some(reason.to_owned());
        status.message = Some(message.to_owned());
    }

    if is_terminal(of_server.phase.as_deref()) {
        status.phase.clone_from(&of_server.phase);
    }

    conditions::set(inputs, &mut status);
    normalize(pod, &mut status);

    status
}

/// The status of a pod that was not admitted.
pub fn rejected(pod: &Pod, reason: &str, message: &str, now: Timestamp) -> PodStatus {
    PodStatus {
        phase: Some("Failed".to_owned()),
        reason: Some(reason.to_owned()),
        message: Some(format!("Pod was rejected: {message}")),
        qos_class: Some(Class::of(pod).as_str().to_owned()),
        observed_generation: pod.metadata.generation,
        start_time: pod
            .pod_status()
            .start_time
            .clone()
            .or_else(|| Some(time(now))),
        conditions: pod.pod_status().conditions.clone(),
        ..PodStatus::default()
    }
}

pub fn is_terminal(phase: Option<&str>) -> bool {
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// A time in whole seconds, as in statuses.
pub fn time(at: Timestamp) -> Time {
    Time(jiff::Timestamp::from_second(at.unix_seconds()).unwrap_or(jiff::Timestamp::UNIX_EPOCH))
}

/// Sets pod IPs, in the order of the node's address families, and host IPs.
fn addresses(inputs: &StatusInputs<'_>, status: &mut PodStatus) {
    let hosts: Vec<String> = inputs
        .host_addresses
        .iter()
        .map(ToString::to_string)
        .collect();
    status.host_ip = hosts.first().cloned();

    status.host_ips = Some(hosts.iter().map(|ip| HostIP { ip: ip.clone() }).collect())
        .filter(|ips: &Vec<_>| !ips.is_empty());
    let own = inputs
        .observed
        .ready_sandbox()
        .map(|sandbox| sandbox.addresses.clone())
        .unwrap_or_default();

    let mut own = in_order(&own, inputs.host_addresses);
    if own.is_empty() {
        // A removed sandbox has no addresses; the reported ones stay.
        let inputs = inputs.before.pod_ips.iter().flatten();
        own = inputs
            .filter_map(|ip| Some(ip.ip.clone()).filter(|ip| !ip.is_empty()))
            .collect();
    }

    if own.is_empty() && inputs.pod.is_host_network() {
        own = hosts;
    }

    status.pod_ip = own.first().cloned();
    status.pod_ips = Some(own.into_iter().map(|ip| PodIP { ip }).collect())
        .filter(|ips: &Vec<_>| !ips.is_empty());
}

/// One address per family, the family of the node's first address first.
pub fn in_order(addresses: &[String], node: &[IpAddr]) -> Vec<String> {
    let parsed: Vec<IpAddr> = addresses
        .iter()
        .filter_map(|text| text.parse().ok())
        .collect();

    let first_is_v4 = node.first().is_none_or(IpAddr::is_ipv4);
    let of = |v4: bool| {
        parsed
            .iter()
            .find(move |address| address.is_ipv4() == v4)
            .map(ToString::to_string)
    };

    of(first_is_v4)
        .into_iter()
        .chain(of(!first_is_v4))
        .collect()
}

/// Total size limit of termination messages in a pod's status.
const MAX_MESSAGES: usize = 12 * 1024;

fn normalize(pod: &Pod, status: &mut PodStatus) {
    let count = pod.lasting_containers().count() + pod.ephemeral_containers().len();
    let each = MAX_MESSAGES / count.max(1);
    let lists = [
        &mut status.container_statuses,
        &mut status.init_container_statuses,
        &mut status.ephemeral_container_statuses,
    ];
    for container in lists.into_iter().flatten().flatten() {
        shorten(container, each);
    }
}

fn shorten(container: &mut ContainerStatus, bytes: usize) {
    let states = [&mut container.state, &mut container.last_state];
    for terminated in states
        .into_iter()
        .flatten()
        .filter_map(|state| state.terminated.as_mut())
    {
        if let Some(message) = terminated
            .message
            .as_mut()
            .filter(|message| message.len() > bytes)
        {
            message.truncate(
                (0..=bytes)
                    .rev()
                    .find(|at| message.is_char_boundary(*at))
                    .unwrap_or(0),
            );
        }
    }
}
