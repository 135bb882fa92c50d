//! Usage of an object.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Pod, PodSpec};

use super::amounts::{self, Amounts, Side};
use crate::quantity::{Format, Quantity};
use crate::time::Timestamp;
use crate::{Value, resource_name, typed};

/// Infix of per-class resources, after the name of the storage class.
pub(super) const BY_CLASS: &str = ".storageclass.storage.k8s.io/";

/// A quota on these requires every container to specify them.
const REQUIRED: [&str; 6] = [
    "cpu",
    "memory",
    "requests.cpu",
    "requests.memory",
    "limits.cpu",
    "limits.memory",
];

/// What the containers of a pod do not specify although a quota requires it.
pub(super) fn missing(counted: &[&str], object: &Value) -> Option<String> {
    let pod: Pod = typed::view(object).ok()?;
    let spec = pod.spec?;

    // Pod-level resources need not be repeated for each container.
    if spec.resources.is_some() {
        return None;
    }

    let mut missing: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for container in spec
        .containers
        .iter()
        .chain(spec.init_containers.iter().flatten())
    {
        let resources = container.resources.as_ref();
        let named = by_quota_names(&Side::Requests.of(resources), &Side::Limits.of(resources));

        let unsaid = counted
            .iter()
            .filter(|name| REQUIRED.contains(name) && !named.contains_key(**name));
        for name in unsaid {
            missing
                .entry(name)
                .or_default()
                .insert(container.name.clone());
        }
    }

    let each = missing.into_iter().map(|(name, containers)| {
        format!(
            "{name} for: {}",
            containers.into_iter().collect::<Vec<_>>().join(",")
        )
    });
    let each: Vec<String> = each.collect();

    (!each.is_empty()).then(|| format!("must specify {}", each.join("; ")))
}

/// A count.
pub(super) fn number(count: usize) -> Quantity {
    Quantity::new(i64::try_from(count).unwrap_or(i64::MAX), Format::DecimalSi)
}

/// A pod that has ended, or should have, uses nothing.
pub(super) fn of_pod(object: &Value, now: Timestamp) -> Amounts {
    let phase = object
        .at(&["status", "phase"])
        .and_then(Value::as_str)
        .unwrap_or_default();

    let meta = object.meta();
    let overdue = match (
        meta.deletion_timestamp(),
        meta.deletion_grace_period_seconds(),
    ) {
        (Some(at), Some(grace)) => now > at.plus_seconds(grace),
        _ => false,
    };

    if matches!(phase, "Failed" | "Succeeded") || overdue {
        return Amounts::new();
    }

    let spec: PodSpec = object
        .get("spec")
        .and_then(|spec| typed::from_tree(spec).ok())
        .unwrap_or_default();
    let (mut requests, mut limits) = (Side::Requests.of_pod(&spec), Side::Limits.of_pod(&spec));

    let overhead = amounts::read(spec.overhead.as_ref());
    amounts::add(&mut requests, &overhead);

    // Resources without a limit stay unlimited.
    let limited = overhead
        .into_iter()
        .filter(|(name, _)| limits.get(name).is_some_and(|limit| !limit.is_zero()));
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

/// The usage of a service: itself, its node ports and load balancers.
pub(super) fn of_service(service: &Value) -> Amounts {
    let ports = service
        .at(&["spec", "ports"])
        .and_then(Value::as_array)
        .unwrap_or_default();

    let requested = || {
        let has_node_port = |port: &&Value| {
            port.get("nodePort")
                .and_then(Value::as_int)
                .is_some_and(|port| port != 0)
        };
        ports.iter().filter(has_node_port).count()
    };

    let allocates = service
        .at(&["spec", "allocateLoadBalancerNodePorts"])
        .and_then(Value::as_bool);
    let (node_ports, balancers) = match service.at(&["spec", "type"]).and_then(Value::as_str) {
        Some("NodePort") => (ports.len(), 0),
        // Node ports are not allocated yet: count those that will be.
        Some("LoadBalancer") if allocates == Some(false) => (requested(), 1),
        Some("LoadBalancer") => (ports.len(), 1),
        _ => (0, 0),
    };

    Amounts::from([
        ("services".to_owned(), number(1)),
        ("services.nodeports".to_owned(), number(node_ports)),
        ("services.loadbalancers".to_owned(), number(balancers)),
    ])
}

/// The usage of a claim, also per storage class.
pub(super) fn of_claim(claim: &Value) -> Amounts {
    let old_way = claim
        .meta()
        .annotation("volume.beta.kubernetes.io/storage-class");
    let class = old_way
        .or_else(|| claim.at(&["spec", "storageClassName"])?.as_str())
        .unwrap_or_default();

    let amount = |path: &[&str]| {
        claim
            .at(path)
            .and_then(|amount| Quantity::from_value(amount).ok())
    };
    let requested_storage = amount(&["spec", "resources", "requests", "storage"]);

    let allocated = amount(&["status", "allocatedResources", "storage"]);
    let storage = requested_storage.map(|requested_storage| match allocated {
        Some(allocated) if allocated > requested_storage => allocated,
        _ => requested_storage,
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
    use crate::codec::json;

    use super::*;

    fn check(found: &Amounts, expected: &str) {
        let found: Vec<String> = found
            .iter()
            .map(|(name, amount)| format!("{name}={amount}"))
            .collect();
        assert_eq!(found.join(","), expected);
    }

    #[test]
    fn a_pods_usage_includes_its_sidecars_and_overhead() {
        let of = |pod: &str| {
            of_pod(
                &json::parse(pod.as_bytes()).unwrap(),
                Timestamp::from_unix(1_767_225_600, 0),
            )
        };

        check(
            &of(
                r#"{"metadata":{},"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"1","example.com/gpu":"2"},
                "limits":{"memory":"1Gi"}}}],"overhead":{"cpu":"250m"}}}"#,
            ),
            "cpu=1250m,limits.memory=1Gi,pods=1,requests.cpu=1250m,requests.example.com/gpu=2",
        );

        check(
            &of(r#"{"metadata":{},"spec":{"containers":[]},"status":{"phase":"Succeeded"}}"#),
            "",
        );
    }

    #[test]
    fn services_and_claims_are_counted() {
        let parse = |text: &str| json::parse(text.as_bytes()).unwrap();
        check(
            &of_service(&parse(
                r#"{"spec":{"type":"LoadBalancer","ports":[{},{}]}}"#,
            )),
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
