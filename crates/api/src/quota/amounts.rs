//! Requests and limits of a pod: sums over its containers, as limit ranges and quotas count them.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, PodSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Written;

use crate::quantity::Quantity;

/// Amounts by resource name.
pub type Amounts = BTreeMap<String, Quantity>;

/// Which part of a container's resources is summed up.
#[derive(Clone, Copy)]
pub enum Side {
    /// Requested amounts.
    Requests,
    /// Maximum amounts.
    Limits,
}

impl Side {
    /// The amounts of a container, or of a whole pod.
    pub fn of(self, resources: Option<&ResourceRequirements>) -> Amounts {
        let given = resources.and_then(|resources| match self {
            Side::Requests => resources.requests.as_ref(),
            Side::Limits => resources.limits.as_ref(),
        });
        read(given)
    }

    /// The sum of a pod: its containers together, or an init container with the sidecars beside it
    /// where that is more. Pod-level resources override it. Without the pod's overhead.
    pub fn of_pod(self, pod: &PodSpec) -> Amounts {
        let mut sum = Amounts::new();
        for container in &pod.containers {
            add(&mut sum, &self.of(container.resources.as_ref()));
        }

        let (mut beside, mut most) = (Amounts::new(), Amounts::new());
        for container in pod.init_containers.iter().flatten() {
            let mut amounts = self.of(container.resources.as_ref());
            if is_sidecar(container) {
                add(&mut sum, &amounts);
                add(&mut beside, &amounts);
                amounts = beside.clone();
            } else {
                add(&mut amounts, &beside);
            }

            at_least(&mut most, &amounts);
        }

        at_least(&mut sum, &most);
        let whole = self.of(pod.resources.as_ref());
        sum.extend(whole.into_iter().filter(|(name, _)| {
            matches!(name.as_str(), "cpu" | "memory") || name.starts_with("hugepages-")
        }));

        sum
    }
}

/// Amounts of an object.
pub fn read(given: Option<&BTreeMap<String, Written>>) -> Amounts {
    let given = given.into_iter().flatten();
    given
        .map(|(name, text)| (name.clone(), text.0.parse().unwrap_or_default()))
        .collect()
}

/// Adds amounts to others.
pub fn add(sum: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        sum.entry(name.clone())
            .and_modify(|sum| sum.add(amount))
            .or_insert_with(|| amount.clone());
    }
}

fn at_least(sum: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        let known = sum.entry(name.clone()).or_insert_with(|| amount.clone());
        if *known < *amount {
            *known = amount.clone();
        }
    }
}

/// Whether this is a sidecar: an init container that keeps running.
fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

#[cfg(test)]
mod tests {
    use crate::codec::json;
    use crate::typed;

    use super::*;

    #[test]
    fn a_pods_sum_is_the_larger_of_its_containers_and_its_init_phase() {
        let check = |spec: &str, expected: &str| {
            let spec: PodSpec = typed::from_tree(&json::parse(spec.as_bytes()).unwrap()).unwrap();
            let sum = Side::Requests.of_pod(&spec);
            assert_eq!(
                sum.get("cpu").map(ToString::to_string).unwrap_or_default(),
                expected,
                "{spec:?}"
            );
        };

        let container = |name: &str, cpu: &str| {
            format!(r#"{{"name":"{name}","resources":{{"requests":{{"cpu":"{cpu}"}}}}}}"#)
        };
        check(r#"{"containers":[{"name":"a"}]}"#, "");
        check(
            &format!(
                r#"{{"containers":[{},{}]}}"#,
                container("a", "100m"),
                container("b", "200m")
            ),
            "300m",
        );

        check(
            &format!(
                r#"{{"containers":[{}],"initContainers":[{}]}}"#,
                container("a", "100m"),
                container("i", "1")
            ),
            "1",
        );

        let beside = container("s", "1").replace(
            "\"name\":\"s\"",
            "\"name\":\"s\",\"restartPolicy\":\"Always\"",
        );

        check(
            &format!(
                r#"{{"containers":[{}],"initContainers":[{beside},{}]}}"#,
                container("a", "1"),
                container("i", "3")
            ),
            "4",
        );

        check(
            &format!(
                r#"{{"containers":[{}],"resources":{{"requests":{{"cpu":"2"}}}}}}"#,
                container("a", "1")
            ),
            "2",
        );
    }
}
