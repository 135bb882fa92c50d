//! Requests and limits of containers as text.

use std::str::FromStr as _;

use coracle_api::quantity::Quantity;
use k8s_openapi::api::core::v1::{Container, Pod, ResourceFieldSelector};

use super::{Amounts, DownwardError};
use crate::pod::PodView as _;

/// Resources whose limit defaults to the node's allocatable. Huge pages do not.
const DEFAULTED: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// Resources with pod-level limits.
const OF_PODS: [&str; 2] = ["cpu", "memory"];

/// Default limits of containers that have none.
#[derive(Clone, Copy, Debug)]
pub enum Allocatable<'a> {
    /// In variables the pod-level limit precedes the node's allocatable.
    OfPodThenNode(&'a Amounts),
    /// In files it does not.
    OfNode(&'a Amounts),
}

/// A request or limit of the container that the selector names, or of `own`.
pub fn resource_of_container(
    selector: &ResourceFieldSelector,
    pod: &Pod,
    own: Option<&Container>,
    allocatable: Allocatable<'_>,
) -> Result<String, DownwardError> {
    let named = selector.container_name.as_deref().unwrap_or_default();
    let container = match (named, own) {
        ("", Some(own)) => own,
        _ => find(pod, named)?,
    };

    let unsupported = || DownwardError::Resource(selector.resource.clone());
    let (bound, name) = selector.resource.split_once('.').ok_or_else(unsupported)?;
    if !DEFAULTED.contains(&name) && !name.starts_with("hugepages-") {
        return Err(unsupported());
    }

    let resources = container.resources.as_ref();
    let asked = match bound {
        "requests" => read(
            resources.and_then(|resources| resources.requests.as_ref()),
            name,
        )?,
        "limits" => {
            let limit = read(
                resources.and_then(|resources| resources.limits.as_ref()),
                name,
            )?;
            match limit.filter(|limit| !limit.is_zero()) {
                Some(limit) => Some(limit),
                None => default_limit(name, pod, allocatable)?,
            }
        }
        _ => return Err(unsupported()),
    };

    let divisor = match &selector.divisor {
        Some(divisor) => Some(parse("divisor", &divisor.0)?).filter(|divisor| !divisor.is_zero()),
        None => None,
    };

    Ok(divided(name, asked.as_ref(), divisor.as_ref()).to_string())
}

/// Ephemeral containers cannot be referenced.
fn find<'a>(pod: &'a Pod, name: &str) -> Result<&'a Container, DownwardError> {
    let mut lasting = pod.lasting_containers();
    let found = lasting.find(|(_, container)| container.name == name);
    found
        .map(|(_, container)| container)
        .ok_or_else(|| DownwardError::Container(name.to_owned()))
}

fn default_limit(
    name: &str,
    pod: &Pod,
    allocatable: Allocatable<'_>,
) -> Result<Option<Quantity>, DownwardError> {
    if !DEFAULTED.contains(&name) {
        return Ok(None);
    }

    let (node, of_pod) = match allocatable {
        Allocatable::OfNode(node) => (node, None),
        Allocatable::OfPodThenNode(node) => {
            let resources = pod.pod_spec().resources.as_ref();
            (
                node,
                resources.and_then(|resources| resources.limits.as_ref()),
            )
        }
    };
    let size = read(Some(node), name)?;

    let of_pod = read(of_pod.filter(|_| OF_PODS.contains(&name)), name)?;

    // The pod's limit replaces the node's size, so without a node size there is none.
    let of_pod = of_pod.filter(|limit| !limit.is_zero() && size.is_some());

    Ok(of_pod.or(size))
}

/// `amount` divided by `divisor`, rounded up; CPU is counted in millicores.
fn divided(name: &str, amount: Option<&Quantity>, divisor: Option<&Quantity>) -> u64 {
    let units = |quantity: &Quantity| match name {
        "cpu" => quantity.milli_value(),
        _ => quantity.value(),
    };
    let whole = if name == "cpu" { 1000 } else { 1 };
    let amount = amount.map_or(0, units);
    let divisor = divisor.map_or(whole, units);
    let positive = |number: i64| u64::try_from(number).unwrap_or_default();
    positive(amount).div_ceil(positive(divisor).max(1))
}

fn read(amounts: Option<&Amounts>, name: &str) -> Result<Option<Quantity>, DownwardError> {
    amounts
        .and_then(|amounts| amounts.get(name))
        .map(|amount| parse(name, &amount.0))
        .transpose()
}

fn parse(name: &str, text: &str) -> Result<Quantity, DownwardError> {
    Quantity::from_str(text).map_err(|error| DownwardError::Amount {
        name: name.to_owned(),
        reason: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const POD: &str = r#"{"spec":{"resources":{"limits":{"cpu":"3"}},
        "initContainers":[{"name":"init","resources":{"limits":{"memory":"1Ki"}}}],
        "containers":[
          {"name":"full","resources":{"requests":{"cpu":"250m","memory":"64Mi","ephemeral-storage":"1Gi","hugepages-2Mi":"4Mi"},
            "limits":{"cpu":"1500m","memory":"100M","hugepages-2Mi":"4Mi"}}},
          {"name":"bare"}]}}"#;

    fn node() -> Amounts {
        serde_json::from_str(r#"{"cpu":"8","memory":"16Gi","ephemeral-storage":"100Gi"}"#).unwrap()
    }

    #[track_caller]
    fn check(container: &str, resource: &str, divisor: &str, expected: Result<&str, &str>) {
        let pod: Pod = serde_json::from_str(POD).unwrap();
        let selector: ResourceFieldSelector = serde_json::from_value(serde_json::json!(
            {"containerName": container, "resource": resource, "divisor": divisor}
        ))
        .unwrap();

        let own = pod.container("bare").map(|(_, container)| container);
        let found = resource_of_container(
            &selector,
            &pod,
            own.as_ref(),
            Allocatable::OfPodThenNode(&node()),
        );

        let found = found.map_err(|error| error.to_string());
        assert_eq!(
            found.as_deref().map_err(String::as_str),
            expected,
            "{container} {resource} {divisor}"
        );
    }

    #[test]
    fn amounts_are_divided_and_rounded_up() {
        check("full", "requests.cpu", "0", Ok("1"));
        check("full", "requests.cpu", "1m", Ok("250"));
        check("full", "requests.cpu", "100m", Ok("3"));
        check("full", "limits.cpu", "1", Ok("2"));
        check("full", "requests.memory", "0", Ok("67108864"));
        check("full", "requests.memory", "1Mi", Ok("64"));
        check("full", "limits.memory", "1Mi", Ok("96"));
        check("full", "limits.memory", "1k", Ok("100000"));
        check("full", "requests.ephemeral-storage", "1Mi", Ok("1024"));
        check("full", "limits.hugepages-2Mi", "1Mi", Ok("4"));
        check("init", "limits.memory", "0", Ok("1024"));
    }

    #[test]
    fn a_missing_limit_defaults_to_the_pods_then_to_the_nodes() {
        check("", "limits.cpu", "0", Ok("3"));
        check("", "limits.memory", "1Gi", Ok("16"));
        check("full", "limits.ephemeral-storage", "1Gi", Ok("100"));
        check("", "limits.hugepages-2Mi", "0", Ok("0"));
        check("", "requests.cpu", "0", Ok("0"));
        let pod: Pod = serde_json::from_str(POD).unwrap();

        let selector = ResourceFieldSelector {
            container_name: Some("bare".to_owned()),
            resource: "limits.cpu".to_owned(),
            divisor: None,
        };
        let in_files = resource_of_container(&selector, &pod, None, Allocatable::OfNode(&node()));
        assert_eq!(in_files.as_deref(), Ok("8"));
    }

    #[test]
    fn unknown_resources_are_refused_with_upstreams_message() {
        check("gone", "limits.cpu", "0", Err("container gone not found"));
        check(
            "full",
            "limits.pods",
            "0",
            Err("unsupported container resource : limits.pods"),
        );

        check(
            "full",
            "cpu",
            "0",
            Err("unsupported container resource : cpu"),
        );
    }
}
