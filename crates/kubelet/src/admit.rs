//! Pod admission on the node. The scheduler has made the same checks; but not every pod passed
//! through it, and the node may have changed since. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use coracle_api::node_affinity::{NodeView, RequiredNodeAffinity};
use coracle_api::quantity::Quantity;
use coracle_api::taint::{Taint, Toleration, find_untolerated};
use coracle_api::{Map, Value, resource_name, typed};
use k8s_openapi::api::core::v1::{AppArmorProfile, ContainerPort, Pod};

use crate::pod::PodView;
use crate::requests::{Amounts, requests};
use crate::sysctls;

/// The node and its pods.
pub struct NodeState<'a> {
    /// The node's object.
    pub node: &'a Value,
    /// Pods that were admitted and have not terminated.
    pub pods: &'a [Arc<Pod>],
    /// Kernel parameters that pods may set besides the safe ones.
    pub sysctls: &'a [String],
    /// Host ports (TCP) that the node itself serves.
    pub reserved_ports: &'a [u16],
}

/// Why a pod is rejected: it fails with this reason and message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub reason: String,
    pub message: String,
}

/// Checks whether the node can run a pod.
pub fn admit(pod: &Pod, state: &NodeState<'_>) -> Result<(), Refusal> {
    let os = pod.pod_spec().os.as_ref().map(|os| os.name.as_str());
    if os.is_some_and(|os| os != "linux") {
        let message = "Failed to admit pod as the OS field doesn't match node OS";
        return Err(Refusal {
            reason: "PodOSNotSupported".to_owned(),
            message: message.to_owned(),
        });
    }

    check_resources(pod, state)?;
    let spec = typed::to_tree(pod.pod_spec()).unwrap_or_default();
    let no_labels = Map::new();
    let labels = state
        .node
        .at(&["metadata", "labels"])
        .and_then(Value::as_object)
        .unwrap_or(&no_labels);

    let view = NodeView {
        name: state.node.meta().name(),
        labels,
    };

    if !RequiredNodeAffinity::from_pod_spec(&spec)
        .matches(&view)
        .unwrap_or_default()
    {
        return Err(predicate(
            "NodeAffinity",
            "node(s) didn't match Pod's node affinity/selector",
        ));
    }

    if takes_reserved_port(pod, state.reserved_ports)
        || state.pods.iter().any(|other| ports_collide(pod, other))
    {
        return Err(predicate(
            "NodePorts",
            "node(s) didn't have free ports for the requested pod ports",
        ));
    }

    let is_static = pod
        .annotation("kubernetes.io/config.source")
        .is_some_and(|source| source != "api");
    let list = |value: Option<&Value>| {
        value
            .and_then(Value::as_array)
            .map(<[_]>::to_vec)
            .unwrap_or_default()
    };
    let taints = list(state.node.at(&["spec", "taints"]));

    let tolerations = list(spec.get("tolerations"));
    let tolerations: Vec<Toleration<'_>> = tolerations.iter().map(Toleration::from_value).collect();
    let evicts = |taint: &&Value| taint.get("effect").and_then(Value::as_str) == Some("NoExecute");

    let taints = taints.iter().filter(evicts).map(Taint::from_value);
    if !is_static && find_untolerated(taints, &tolerations, false).is_some() {
        return Err(predicate(
            "TaintToleration",
            "node(s) had taints that the pod didn't tolerate",
        ));
    }

    if let Some(message) = sysctls::forbidden(pod, state.sysctls) {
        return Err(Refusal {
            reason: "SysctlForbidden".to_owned(),
            message,
        });
    }

    if requests_app_armor(pod) {
        let message = "Cannot enforce AppArmor: this node does not support AppArmor".to_owned();
        return Err(Refusal {
            reason: "AppArmor".to_owned(),
            message,
        });
    }

    Ok(())
}

/// Whether a pod requests confinement by an AppArmor profile: it must not run without.
fn requests_app_armor(pod: &Pod) -> bool {
    let confines = |profile: Option<&AppArmorProfile>| {
        profile.is_some_and(|profile| profile.type_ != "Unconfined")
    };

    let spec = pod.pod_spec();
    let all = spec
        .init_containers
        .iter()
        .flatten()
        .chain(&spec.containers);

    let mut own = all.map(|container| {
        container
            .security_context
            .as_ref()?
            .app_armor_profile
            .as_ref()
    });

    confines(
        spec.security_context
            .as_ref()
            .and_then(|context| context.app_armor_profile.as_ref()),
    ) || own.any(confines)
}

fn predicate(name: &str, text: &str) -> Refusal {
    Refusal {
        reason: name.to_owned(),
        message: format!("Predicate {name} failed: {text}"),
    }
}

fn check_resources(pod: &Pod, state: &NodeState<'_>) -> Result<(), Refusal> {
    let allocatable = |name: &str| -> Option<Quantity> {
        state
            .node
            .at(&["status", "allocatable", name])
            .and_then(|value| Quantity::from_value(value).ok())
    };

    let insufficient = |name: &str, requested: i64, used: i64, capacity: i64| Refusal {
        reason: format!("OutOf{name}"),
        message: format!(
            "Node didn't have enough resource: {name}, requested: {requested}, used: {used}, capacity: {capacity}"
        ),
    };

    let count = i64::try_from(state.pods.len()).unwrap_or(i64::MAX);
    if let Some(limit) = allocatable("pods").map(|limit| limit.value())
        && count + 1 > limit
    {
        return Err(insufficient("pods", 1, count, limit));
    }

    let mut used: BTreeMap<String, i64> = BTreeMap::new();
    let number = |name: &str, amount: &Quantity| match name {
        "cpu" => amount.milli_value(),
        _ => amount.value(),
    };

    for (name, amount) in state.pods.iter().flat_map(|other| requests(other)) {
        *used.entry(name.clone()).or_default() += number(&name, &amount);
    }

    let requested: Amounts = requests(pod);
    for (name, amount) in requested.iter().filter(|(_, amount)| !amount.is_zero()) {
        // An extended resource that the node does not report may be handled by a scheduler
        // extender.
        let Some(limit) = allocatable(name) else {
            if resource_name::is_extended(name) {
                continue;
            }
            return Err(insufficient(name, number(name, amount), 0, 0));
        };
        let (requested, limit) = (number(name, amount), number(name, &limit));

        let used = used.get(name).copied().unwrap_or_default();
        if requested > limit - used {
            return Err(insufficient(name, requested, used, limit));
        }
    }

    Ok(())
}

/// Whether a pod would take a port from the node. The rules of host ports come before the node's own
/// sockets, so that a pod could take the API server's place. A pod in the host's network cannot: its
/// sockets would not get the port.
fn takes_reserved_port(pod: &Pod, reserved: &[u16]) -> bool {
    let in_host_network = pod.pod_spec().host_network.unwrap_or_default();
    !in_host_network
        && host_ports(pod).any(|(_, protocol, number)| {
            protocol == "TCP" && reserved.iter().any(|port| i32::from(*port) == number)
        })
}

fn ports_collide(one: &Pod, other: &Pod) -> bool {
    host_ports(one).any(|mine| host_ports(other).any(|theirs| collide(&mine, &theirs)))
}

type HostPort = (String, String, i32);

fn host_ports(pod: &Pod) -> impl Iterator<Item = HostPort> {
    let ports = pod
        .lasting_containers()
        .flat_map(|(_, container)| container.ports.iter().flatten());
    ports.filter_map(|port: &ContainerPort| {
        let number = port.host_port.filter(|number| *number > 0)?;
        let address = port
            .host_ip
            .clone()
            .filter(|ip| !ip.is_empty())
            .unwrap_or_else(|| "0.0.0.0".to_owned());
        let protocol = port.protocol.clone().unwrap_or_else(|| "TCP".to_owned());
        Some((address, protocol, number))
    })
}

fn collide(one: &HostPort, other: &HostPort) -> bool {
    let everywhere = |address: &str| matches!(address, "0.0.0.0" | "::");
    let same_address = one.0 == other.0 || everywhere(&one.0) || everywhere(&other.0);
    same_address && one.1 == other.1 && one.2 == other.2
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::yaml;

    use super::*;

    fn pod(spec: &str) -> Pod {
        let text = format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec: {spec}");
        typed::from_tree(&yaml::decode(text.as_bytes()).unwrap()).unwrap()
    }

    fn check(spec: &str, others: &[&str], refused: Option<(&str, &str)>) {
        let node = "apiVersion: v1\nkind: Node\nmetadata: {name: n, labels: {zone: a}}\n\
            spec: {taints: [{key: k, effect: NoExecute}, {key: s, effect: NoSchedule}]}\n\
            status: {allocatable: {cpu: 2, memory: 1Gi, pods: 3}}";
        let node = yaml::decode(node.as_bytes()).unwrap();

        let others: Vec<Arc<Pod>> = others.iter().map(|spec| Arc::new(pod(spec))).collect();
        let answer = admit(
            &pod(spec),
            &NodeState {
                node: &node,
                pods: &others,
                sysctls: &[],
                reserved_ports: &[6443],
            },
        );

        let expected = refused.map(|(reason, message)| Refusal {
            reason: reason.to_owned(),
            message: message.to_owned(),
        });
        assert_eq!(answer.err(), expected, "{spec}");
    }

    const TOLERANT: &str = "tolerations: [{operator: Exists}]";

    fn cpu(amount: &str) -> String {
        format!(
            "{{{TOLERANT}, containers: [{{name: c, resources: {{requests: {{cpu: {amount}}}}}}}]}}"
        )
    }

    #[test]
    fn a_pod_that_does_not_fit_is_refused_with_upstreams_message() {
        check(&cpu("1"), &[], None);
        check(&cpu("1"), &[&cpu("1")], None);
        let text =
            "Node didn't have enough resource: cpu, requested: 1500, used: 1000, capacity: 2000";
        check(&cpu("1500m"), &[&cpu("1")], Some(("OutOfcpu", text)));
        let (three, one) = (cpu("0"), cpu("0"));
        let text = "Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3";
        check(&one, &[&three, &three, &three], Some(("OutOfpods", text)));
    }

    #[test]
    fn a_pod_whose_node_constraints_do_not_match_is_refused() {
        let text =
            "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector";
        check(
            &format!("{{{TOLERANT}, nodeSelector: {{zone: a}}, containers: []}}"),
            &[],
            None,
        );

        check(
            &format!("{{{TOLERANT}, nodeSelector: {{zone: b}}, containers: []}}"),
            &[],
            Some(("NodeAffinity", text)),
        );

        let text =
            "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate";
        check("{containers: []}", &[], Some(("TaintToleration", text)));

        let text = "Failed to admit pod as the OS field doesn't match node OS";
        check(
            &format!("{{{TOLERANT}, os: {{name: windows}}, containers: []}}"),
            &[],
            Some(("PodOSNotSupported", text)),
        );
    }

    #[test]
    fn a_pod_whose_confinement_is_not_supported_is_refused() {
        let of_pod = |context: &str| {
            format!("{{{TOLERANT}, securityContext: {{{context}}}, containers: []}}")
        };
        let of_container = |profile: &str| {
            let context = format!("securityContext: {{appArmorProfile: {{type: {profile}}}}}");
            format!("{{{TOLERANT}, containers: [{{name: c, {context}}}]}}")
        };

        let text = "Cannot enforce AppArmor: this node does not support AppArmor";
        check(
            &of_pod("appArmorProfile: {type: RuntimeDefault}"),
            &[],
            Some(("AppArmor", text)),
        );

        check(&of_pod("appArmorProfile: {type: Unconfined}"), &[], None);
        check(
            &of_container("RuntimeDefault"),
            &[],
            Some(("AppArmor", text)),
        );

        check(&of_container("Unconfined"), &[], None);
        let text = r#"forbidden sysctl: "net.core.somaxconn" not allowlisted"#;
        check(
            &of_pod("sysctls: [{name: net.core.somaxconn, value: '1'}]"),
            &[],
            Some(("SysctlForbidden", text)),
        );
    }

    #[test]
    fn host_ports_must_not_collide() {
        let port = |ip: &str, number: i32| {
            format!(
                "{{{TOLERANT}, containers: [{{name: c, ports: [{{containerPort: 1, hostPort: {number}, hostIP: {ip}}}]}}]}}"
            )
        };

        let text = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports";
        check(
            &port("0.0.0.0", 80),
            &[&port("1.2.3.4", 80)],
            Some(("NodePorts", text)),
        );

        check(&port("127.0.0.1", 6443), &[], Some(("NodePorts", text)));
        check(&port("1.2.3.5", 80), &[&port("1.2.3.4", 80)], None);
        check(&port("0.0.0.0", 81), &[&port("0.0.0.0", 80)], None);
    }
}
