//! The QoS class that follows from a pod's requests and limits.

use std::collections::BTreeMap;

use coracle_api::quantity::Quantity;
use k8s_openapi::api::core::v1::{PodSpec, ResourceRequirements};

use super::validate::resources::Amounts;
use crate::validate::items;
use crate::validate::resources::read;

type Totals<'a> = BTreeMap<&'a str, Quantity>;

/// `BestEffort` where nothing is requested, `Guaranteed` where every limit equals its request, else
/// `Burstable`. Only CPU and memory count.
pub fn class(spec: &PodSpec) -> &'static str {
    // Resources of the whole pod take precedence.
    let whole = spec.resources.as_ref();
    let parts: Vec<Option<&ResourceRequirements>> = match whole {
        Some(_) => vec![whole],
        None => {
            let containers = spec.containers.iter().chain(items(&spec.init_containers));
            containers
                .map(|container| container.resources.as_ref())
                .collect()
        }
    };

    let (mut requests, mut limits) = (Totals::new(), Totals::new());
    let mut all_limited = true;
    for part in parts {
        add(&mut requests, part.and_then(|part| part.requests.as_ref()));
        let given = part.and_then(|part| part.limits.as_ref());
        let both = add(&mut limits, given) == 2;
        // Pod-level resources without limits are classified by the sums alone.
        all_limited &= both || (whole.is_some() && given.is_none());
    }

    if requests.is_empty() && limits.is_empty() {
        "BestEffort"
    } else if all_limited && requests == limits {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

/// Adds positive amounts; returns how many resources there were.
fn add<'a>(totals: &mut Totals<'a>, amounts: Option<&'a Amounts>) -> usize {
    let mut counted = 0;
    for (name, text) in amounts.into_iter().flatten() {
        let more = read(text);
        if matches!(name.as_str(), "cpu" | "memory") && more.signum() > 0 {
            counted += 1;
            totals.entry(name).or_default().add(&more);
        }
    }
    counted
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::json;
    use coracle_api::typed;

    use super::*;

    fn check(spec: &str, expected: &str) {
        let spec: PodSpec = typed::from_tree(&json::parse(spec.as_bytes()).unwrap()).unwrap();
        assert_eq!(class(&spec), expected);
    }

    #[test]
    fn a_class_follows_from_requests_and_limits() {
        check(r#"{"containers":[{"name":"a"}]}"#, "BestEffort");
        check(
            r#"{"containers":[{"name":"a","resources":{"requests":{"cpu":"0","example.com/x":"1"}}}]}"#,
            "BestEffort",
        );

        check(
            r#"{"containers":[{"name":"a","resources":{"requests":{"cpu":"1"}}}]}"#,
            "Burstable",
        );

        let full = r#""resources":{"requests":{"cpu":"1","memory":"1Gi"},"limits":{"cpu":"1000m","memory":"1Gi"}}"#;
        check(
            &format!(r#"{{"containers":[{{"name":"a",{full}}}]}}"#),
            "Guaranteed",
        );

        check(
            &format!(r#"{{"containers":[{{"name":"a",{full}}},{{"name":"b"}}]}}"#),
            "Burstable",
        );

        check(
            &format!(
                r#"{{"containers":[{{"name":"a",{full}}}],"initContainers":[{{"name":"b"}}]}}"#
            ),
            "Burstable",
        );

        check(
            &format!(r#"{{"containers":[{{"name":"a"}}],{full}}}"#),
            "Guaranteed",
        );

        check(
            r#"{"containers":[{"name":"a"}],"resources":{"requests":{"cpu":"1"}}}"#,
            "Burstable",
        );
    }
}
