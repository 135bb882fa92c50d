//! QoS classes and OOM scores.

use std::collections::BTreeMap;

use coracle_api::quantity::Quantity;
use k8s_openapi::api::core::v1::{Container, Pod, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;

use crate::pod::{Kind, PodView};

/// Lowest priority of node-critical pods.
const NODE_CRITICAL: i32 = 2_000_001_000;
/// Lowest priority of cluster-critical pods.
const CRITICAL: i32 = 2_000_000_000;

/// The QoS class of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Guaranteed,
    Burstable,
    BestEffort,
}

impl Class {
    /// As in the pod's status.
    pub fn as_str(self) -> &'static str {
        match self {
            Class::Guaranteed => "Guaranteed",
            Class::Burstable => "Burstable",
            Class::BestEffort => "BestEffort",
        }
    }

    /// The class of a pod by its requests and limits. The class in its status takes precedence, as
    /// it never changes.
    pub fn of(pod: &Pod) -> Class {
        match pod.pod_status().qos_class.as_deref() {
            Some("Guaranteed") => return Class::Guaranteed,
            Some("Burstable") => return Class::Burstable,
            Some("BestEffort") => return Class::BestEffort,
            _ => {}
        }

        let of_pod = pod
            .pod_spec()
            .resources
            .as_ref()
            .filter(|resources| has_any(resources));

        let all: Vec<ResourceRequirements> = match of_pod {
            Some(resources) => vec![resources.clone()],
            None => pod
                .lasting_containers()
                .map(|(_, container)| container.resources.clone().unwrap_or_default())
                .collect(),
        };

        if !all.iter().any(has_any) {
            return Class::BestEffort;
        }

        let guaranteed = all.iter().all(|resources| {
            COMPUTE.iter().all(|name| {
                let limit = amount(resources.limits.as_ref(), name);
                let request = amount(resources.requests.as_ref(), name).or_else(|| limit.clone());
                limit.is_some() && limit == request
            })
        });

        if guaranteed {
            Class::Guaranteed
        } else {
            Class::Burstable
        }
    }
}

const COMPUTE: [&str; 2] = ["cpu", "memory"];

fn has_any(resources: &ResourceRequirements) -> bool {
    COMPUTE.iter().any(|name| {
        amount(resources.requests.as_ref(), name).is_some()
            || amount(resources.limits.as_ref(), name).is_some()
    })
}

/// A non-zero amount.
fn amount(list: Option<&BTreeMap<String, Text>>, name: &str) -> Option<Quantity> {
    quantity(list, name).filter(|amount| !amount.is_zero())
}

/// An amount, if present and valid.
pub fn quantity(list: Option<&BTreeMap<String, Text>>, name: &str) -> Option<Quantity> {
    list?.get(name)?.0.parse().ok()
}

/// Whether a pod is critical: it preempts others and is not preempted.
pub fn is_critical(pod: &Pod) -> bool {
    pod.pod_spec()
        .priority
        .is_some_and(|priority| priority >= CRITICAL)
        || pod
            .annotation("kubernetes.io/config.source")
            .is_some_and(|source| source != "api")
        || pod.annotation("kubernetes.io/config.mirror").is_some()
}

/// The OOM score adjustment: from -997 (killed last) to 1000 (killed first).
pub fn oom_score(pod: &Pod, container: &Container, capacity: i64) -> i64 {
    if pod
        .pod_spec()
        .priority
        .is_some_and(|priority| priority >= NODE_CRITICAL)
    {
        return -997;
    }

    let own = |container: &Container| match Class::of(pod) {
        Class::Guaranteed => -997,
        Class::BestEffort => 1000,
        Class::Burstable => {
            let requests = container
                .resources
                .as_ref()
                .and_then(|resources| resources.requests.as_ref());
            let request = quantity(requests, "memory").map_or(0, |memory| memory.value());
            let share = i128::from(request) * 1000 / i128::from(capacity.max(1));
            (1000 - i64::try_from(share).unwrap_or(1000)).clamp(3, 999)
        }
    };

    let is_sidecar = pod
        .lasting_containers()
        .any(|(kind, other)| kind == Kind::Sidecar && other.name == container.name);

    // A sidecar is not killed before the containers it serves.
    let others = pod
        .pod_spec()
        .containers
        .iter()
        .map(own)
        .min()
        .filter(|_| is_sidecar);

    own(container).min(others.unwrap_or(1000))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::PodSpec;

    use super::*;

    fn list(pairs: &[(&str, &str)]) -> Option<BTreeMap<String, Text>> {
        Some(
            pairs
                .iter()
                .map(|(name, amount)| ((*name).to_owned(), Text((*amount).to_owned())))
                .collect(),
        )
    }

    fn container(requests: &[(&str, &str)], limits: &[(&str, &str)]) -> Container {
        let resources = ResourceRequirements {
            requests: list(requests),
            limits: list(limits),
            ..ResourceRequirements::default()
        };
        Container {
            name: "c".into(),
            resources: Some(resources),
            ..Container::default()
        }
    }

    fn pod(containers: Vec<Container>) -> Pod {
        Pod {
            spec: Some(PodSpec {
                containers,
                ..PodSpec::default()
            }),
            ..Pod::default()
        }
    }

    #[test]
    fn requests_and_limits_make_the_class() {
        let check = |containers: Vec<Container>, class: Class| {
            assert_eq!(Class::of(&pod(containers)), class)
        };
        check(vec![container(&[], &[])], Class::BestEffort);
        check(vec![container(&[("cpu", "0")], &[])], Class::BestEffort);
        check(vec![container(&[("cpu", "1")], &[])], Class::Burstable);

        let both = [("cpu", "1"), ("memory", "1Gi")];
        check(vec![container(&both, &both)], Class::Guaranteed);
        check(vec![container(&[], &both)], Class::Guaranteed);
        check(
            vec![container(&both, &both), container(&[], &[])],
            Class::Burstable,
        );

        check(
            vec![container(&[("cpu", "1000m"), ("memory", "1024Mi")], &both)],
            Class::Guaranteed,
        );

        check(vec![container(&[("cpu", "500m")], &both)], Class::Burstable);
    }

    #[test]
    fn larger_requests_have_a_lower_oom_score() {
        let check = |container: Container, score: i64| {
            assert_eq!(
                oom_score(&pod(vec![container.clone()]), &container, 1 << 30),
                score
            );
        };
        check(container(&[], &[]), 1000);
        check(container(&[], &[("cpu", "1"), ("memory", "1Gi")]), -997);
        check(container(&[("memory", "512Mi")], &[]), 500);
        check(container(&[("memory", "2Gi")], &[]), 3);
        check(container(&[("cpu", "1")], &[]), 999);
    }
}
