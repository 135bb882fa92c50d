//! How much of what an object needs.

use std::collections::{BTreeMap, BTreeSet};

use coracle_api::quantity::{Format, Quantity};
use coracle_api::time::Timestamp;
use coracle_api::{Value, resource_name, typed};
use k8s_openapi::api::core::v1::{Pod, PodSpec};

use super::super::amounts::{self, Amounts, Side};
use super::super::{Attributes, Operation};
use crate::registry::Part;

/// Of what the quotas of pods speak, besides huge pages and what is not Kubernetes' own.
const OF_PODS: [&str; 11] = [
    "count/pods",
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
];

/// Of what the quotas of claims speak; also of one class of storage at a time.
const OF_CLAIMS: [&str; 2] = ["persistentvolumeclaims", "requests.storage"];
const BY_CLASS: &str = ".storageclass.storage.k8s.io/";

/// A quota on these asks every container to say how much of it it wants.
const TO_BE_NAMED: [&str; 6] =
    ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];

/// Whether a write can change what is counted.
pub(super) fn counts(object: &Value, attributes: &Attributes<'_>) -> bool {
    let ends = |pod: &Value| pod.at(&["spec", "activeDeadlineSeconds"]).is_some_and(|after| !after.is_null());
    match (kind(attributes), attributes.operation, attributes.part) {
        (_, Operation::Create, Part::Main)
        | (Kind::Pods, Operation::Update, Part::Resize)
        | (Kind::Services | Kind::Claims, Operation::Update, Part::Main) => true,
        (Kind::Pods, Operation::Update, Part::Main) => {
            attributes.old.is_some_and(|old| ends(old) != ends(object))
        }
        (Kind::Claims, Operation::Update, Part::Status) => {
            let allocated = |claim: &Value| claim.at(&["status", "allocatedResources", "storage"]).cloned();
            attributes.old.is_some_and(|old| allocated(old) != allocated(object))
        }
        _ => false,
    }
}

/// What knows how to count.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Pods,
    Services,
    Claims,
    /// Everything else is counted by the piece.
    Pieces,
}

fn kind(attributes: &Attributes<'_>) -> Kind {
    match (attributes.scope.resource.group.as_str(), attributes.scope.resource.plural.as_str()) {
        ("", "pods") => Kind::Pods,
        ("", "services") => Kind::Services,
        ("", "persistentvolumeclaims") => Kind::Claims,
        _ => Kind::Pieces,
    }
}

/// What pieces are counted by: `count/deployments.apps`.
fn piece(attributes: &Attributes<'_>) -> String {
    match attributes.scope.resource.group.as_str() {
        "" => format!("count/{}", attributes.scope.resource.plural),
        group => format!("count/{}.{group}", attributes.scope.resource.plural),
    }
}

/// Pieces that were counted by their bare name first.
fn has_bare_name(attributes: &Attributes<'_>) -> bool {
    ["configmaps", "resourcequotas", "replicationcontrollers", "secrets"]
        .into_iter()
        .any(|plural| attributes.is_of("", plural))
}

/// Whether objects of this resource count as a quota's resource.
pub(super) fn is_counted(name: &str, attributes: &Attributes<'_>) -> bool {
    match kind(attributes) {
        Kind::Pods => {
            let foreign = !resource_name::is_native(name) && name.starts_with("requests.");
            OF_PODS.contains(&name)
                || name.starts_with("hugepages-")
                || name.starts_with("requests.hugepages-")
                || foreign
        }
        Kind::Services => {
            matches!(name, "count/services" | "services" | "services.nodeports" | "services.loadbalancers")
        }
        Kind::Claims => {
            let of_class = name.split_once(BY_CLASS).is_some_and(|(_, rest)| OF_CLAIMS.contains(&rest));
            name == "count/persistentvolumeclaims" || OF_CLAIMS.contains(&name) || of_class
        }
        Kind::Pieces => {
            name == piece(attributes)
                || (has_bare_name(attributes) && name == attributes.scope.resource.plural)
        }
    }
}

/// What the containers of a pod do not say though a quota wants to know.
pub(super) fn missing(counted: &[&str], object: &Value, attributes: &Attributes<'_>) -> Option<String> {
    let pod: Pod = typed::view(object).ok().filter(|_| kind(attributes) == Kind::Pods)?;
    let spec = pod.spec?;
    // Who says it of the whole pod need not say it of each container.
    if spec.resources.is_some() {
        return None;
    }
    let mut missing: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for container in spec.containers.iter().chain(spec.init_containers.iter().flatten()) {
        let resources = container.resources.as_ref();
        let named = by_quota_names(&Side::Requests.of(resources), &Side::Limits.of(resources));
        let unsaid = counted.iter().filter(|name| TO_BE_NAMED.contains(name) && !named.contains_key(**name));
        for name in unsaid {
            missing.entry(name).or_default().insert(container.name.clone());
        }
    }
    let each = missing.into_iter().map(|(name, containers)| {
        format!("{name} for: {}", containers.into_iter().collect::<Vec<_>>().join(","))
    });
    let each: Vec<String> = each.collect();
    (!each.is_empty()).then(|| format!("must specify {}", each.join("; ")))
}

/// How much an object needs, by the names that quotas have for it.
pub(super) fn of(object: &Value, attributes: &Attributes<'_>, now: Timestamp) -> Amounts {
    let mut amounts = Amounts::from([(piece(attributes), number(1))]);
    match kind(attributes) {
        Kind::Pods => amounts.extend(of_pod(object, now)),
        Kind::Services => amounts.extend(of_service(object)),
        Kind::Claims => amounts.extend(of_claim(object)),
        Kind::Pieces if has_bare_name(attributes) => {
            amounts.insert(attributes.scope.resource.plural.to_string(), number(1));
        }
        Kind::Pieces => {}
    }
    amounts
}

fn number(count: usize) -> Quantity {
    Quantity::new(i64::try_from(count).unwrap_or(i64::MAX), Format::DecimalSi)
}

/// A pod that has ended, or should have, needs nothing any more.
fn of_pod(object: &Value, now: Timestamp) -> Amounts {
    let phase = object.at(&["status", "phase"]).and_then(Value::as_str).unwrap_or_default();
    let meta = object.meta();
    let overdue = match (meta.deletion_timestamp(), meta.deletion_grace_period_seconds()) {
        (Some(at), Some(grace)) => now > at.plus_seconds(grace),
        _ => false,
    };
    if matches!(phase, "Failed" | "Succeeded") || overdue {
        return Amounts::new();
    }
    let spec: PodSpec = object.get("spec").and_then(|spec| typed::from_tree(spec).ok()).unwrap_or_default();
    let (mut requests, mut limits) = (Side::Requests.of_pod(&spec), Side::Limits.of_pod(&spec));
    let overhead = amounts::read(spec.overhead.as_ref());
    amounts::add(&mut requests, &overhead);
    // What is not limited stays so.
    let limited =
        overhead.into_iter().filter(|(name, _)| limits.get(name).is_some_and(|limit| !limit.is_zero()));
    let limited = limited.collect();
    amounts::add(&mut limits, &limited);
    let mut amounts = by_quota_names(&requests, &limits);
    amounts.insert("pods".to_owned(), number(1));
    amounts
}

fn by_quota_names(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut amounts = Amounts::new();
    for (name, amount) in requests {
        let known = matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage");
        if known || name.starts_with("hugepages-") {
            amounts.insert(name.clone(), amount.clone());
        }
        if known || name.starts_with("hugepages-") || resource_name::is_extended(name) {
            amounts.insert(format!("requests.{name}"), amount.clone());
        }
    }
    for (name, amount) in limits {
        if matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage") {
            amounts.insert(format!("limits.{name}"), amount.clone());
        }
    }
    amounts
}

fn of_service(service: &Value) -> Amounts {
    let ports = service.at(&["spec", "ports"]).and_then(Value::as_array).unwrap_or_default();
    let asked_for = || {
        let has_node_port =
            |port: &&Value| port.get("nodePort").and_then(Value::as_int).is_some_and(|port| port != 0);
        ports.iter().filter(has_node_port).count()
    };
    let allocates = service.at(&["spec", "allocateLoadBalancerNodePorts"]).and_then(Value::as_bool);
    let (node_ports, balancers) = match service.at(&["spec", "type"]).and_then(Value::as_str) {
        Some("NodePort") => (ports.len(), 0),
        // Ports are not allocated yet: what counts is what is going to be.
        Some("LoadBalancer") if allocates == Some(false) => (asked_for(), 1),
        Some("LoadBalancer") => (ports.len(), 1),
        _ => (0, 0),
    };
    Amounts::from([
        ("services".to_owned(), number(1)),
        ("services.nodeports".to_owned(), number(node_ports)),
        ("services.loadbalancers".to_owned(), number(balancers)),
    ])
}

fn of_claim(claim: &Value) -> Amounts {
    let old_way = claim.meta().annotation("volume.beta.kubernetes.io/storage-class");
    let class = old_way.or_else(|| claim.at(&["spec", "storageClassName"])?.as_str()).unwrap_or_default();
    let amount = |path: &[&str]| claim.at(path).and_then(|amount| Quantity::from_value(amount).ok());
    let asked = amount(&["spec", "resources", "requests", "storage"]);
    let allocated = amount(&["status", "allocatedResources", "storage"]);
    let storage = asked.map(|asked| match allocated {
        Some(allocated) if allocated > asked => allocated,
        _ => asked,
    });
    let mut amounts = Amounts::from([("persistentvolumeclaims".to_owned(), number(1))]);
    if let Some(mut storage) = storage {
        storage.round_up(0);
        amounts.insert("requests.storage".to_owned(), storage);
    }
    if !class.is_empty() {
        let of_class: Amounts = amounts
            .iter()
            .map(|(name, amount)| (format!("{class}{BY_CLASS}{name}"), amount.clone()))
            .collect();
        amounts.extend(of_class);
    }
    amounts
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::json;

    use super::*;

    fn check(found: &Amounts, expected: &str) {
        let found: Vec<String> = found.iter().map(|(name, amount)| format!("{name}={amount}")).collect();
        assert_eq!(found.join(","), expected);
    }

    #[test]
    fn pods_need_what_they_ask_for_and_what_runs_beside_them() {
        let of =
            |pod: &str| of_pod(&json::parse(pod.as_bytes()).unwrap(), Timestamp::from_unix(1_767_225_600, 0));
        check(
            &of(
                r#"{"metadata":{},"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"1","example.com/gpu":"2"},
                "limits":{"memory":"1Gi"}}}],"overhead":{"cpu":"250m"}}}"#,
            ),
            "cpu=1250m,limits.memory=1Gi,pods=1,requests.cpu=1250m,requests.example.com/gpu=2",
        );
        check(&of(r#"{"metadata":{},"spec":{"containers":[]},"status":{"phase":"Succeeded"}}"#), "");
    }

    #[test]
    fn services_and_claims_are_counted_by_what_they_take() {
        let parse = |text: &str| json::parse(text.as_bytes()).unwrap();
        check(
            &of_service(&parse(r#"{"spec":{"type":"LoadBalancer","ports":[{},{}]}}"#)),
            "services=1,services.loadbalancers=1,services.nodeports=2",
        );
        check(
            &of_service(&parse(
                r#"{"spec":{"type":"LoadBalancer","allocateLoadBalancerNodePorts":false,"ports":[{"nodePort":1},{}]}}"#,
            )),
            "services=1,services.loadbalancers=1,services.nodeports=1",
        );
        check(
            &of_claim(&parse(
                r#"{"metadata":{},"spec":{"storageClassName":"gold","resources":{"requests":{"storage":"1Gi"}}}}"#,
            )),
            "gold.storageclass.storage.k8s.io/persistentvolumeclaims=1,gold.storageclass.storage.k8s.io/requests.storage=1Gi,\
             persistentvolumeclaims=1,requests.storage=1Gi",
        );
    }
}
