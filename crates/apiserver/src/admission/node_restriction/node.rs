//! Node: a kubelet writes only its own, and none of the fields that other components trust (taints,
//! restricted labels, config source).

use std::collections::BTreeSet;

use coracle_api::go_text::Quoted;
use coracle_api::{Map, Value};

use super::Write;
use crate::ApiError;
use crate::admission::Operation;

/// Labels of Kubernetes' own that kubelets set.
const OWN: [&str; 12] = [
    "kubernetes.io/hostname",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/instance-type",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
    "node.kubernetes.io/windows-build",
];

/// Where all labels are theirs.
const OWN_PLACES: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];

/// Where none is.
const RESTRICTED: &str = "node-restriction.kubernetes.io";

pub(super) fn check(write: &Write<'_>) -> Result<(), ApiError> {
    let node = Quoted(write.node);
    if write.name() != write.node {
        let other = Quoted(write.name());
        return Err(write.refused(&format!(
            "node {node} is not allowed to modify node {other}"
        )));
    }

    let Some(new) = write.object else {
        return Ok(());
    };
    let source = |node: &Value| {
        node.at(&["spec", "configSource"])
            .filter(|source| !source.is_null())
            .cloned()
    };

    match (write.attributes.operation, write.attributes.old) {
        (Operation::Create, _) => {
            if source(new).is_some() {
                let why = format!(
                    "node {node} is not allowed to create pods with a non-nil configSource"
                );
                return Err(write.refused(&why));
            }

            let labels = forbidden(labels(new), None);
            if !labels.is_empty() {
                let labels = labels.join(", ");
                let why =
                    format!("node {node} is not allowed to set the following labels: {labels}");
                return Err(write.refused(&why));
            }
        }
        (Operation::Update, Some(old)) => {
            if source(new).is_some() && source(new) != source(old) {
                let why = format!(
                    "node {node} is not allowed to update configSource to a new non-nil configSource"
                );
                return Err(write.refused(&why));
            }

            for (path, what) in [
                (["spec", "taints"], "taints"),
                (["metadata", "ownerReferences"], "ownerReferences"),
            ] {
                let list = |node: &Value| {
                    node.at(&path)
                        .and_then(Value::as_array)
                        .unwrap_or_default()
                        .to_vec()
                };

                if list(new) != list(old) {
                    return Err(
                        write.refused(&format!("node {node} is not allowed to modify {what}"))
                    );
                }
            }

            let labels = forbidden(labels(new), labels(old));
            if !labels.is_empty() {
                let why = format!("is not allowed to modify labels: {}", labels.join(", "));
                return Err(write.refused(&why));
            }
        }
        _ => {}
    }

    Ok(())
}

fn labels(node: &Value) -> Option<&Map> {
    node.at(&["metadata", "labels"]).and_then(Value::as_object)
}

/// The labels that differ and are not a kubelet's to set.
fn forbidden(new: Option<&Map>, old: Option<&Map>) -> Vec<String> {
    let all = new
        .iter()
        .chain(&old)
        .flat_map(|labels| labels.keys())
        .collect::<BTreeSet<&str>>();

    let value =
        |labels: Option<&Map>, key: &str| labels.and_then(|labels| labels.get(key).cloned());
    let changed = all
        .into_iter()
        .filter(|key| value(new, key) != value(old, key));

    changed
        .filter(|key| !is_own(key))
        .map(str::to_string)
        .collect()
}

fn is_own(key: &str) -> bool {
    let place = key.split_once('/').map_or("", |(place, _)| place);
    let is_in = |of: &str| {
        place == of
            || place
                .strip_suffix(of)
                .is_some_and(|rest| rest.ends_with('.'))
    };

    if is_in(RESTRICTED) {
        return false;
    }

    let is_kubernetes = is_in("kubernetes.io") || is_in("k8s.io");
    !is_kubernetes || OWN.contains(&key) || OWN_PLACES.iter().any(|of| is_in(of))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubelets_set_the_labels_that_are_theirs() {
        for (label, expected) in [
            ("a", true),
            ("example.com/a", true),
            ("kubernetes.io/hostname", true),
            ("kubernetes.io/other", false),
            ("x.k8s.io/y", false),
            ("node.kubernetes.io/anything", true),
            ("sub.kubelet.kubernetes.io/anything", true),
            ("node-restriction.kubernetes.io/a", false),
            ("sub.node-restriction.kubernetes.io/a", false),
            ("node-role.kubernetes.io/control-plane", false),
            ("xkubernetes.io/a", true),
        ] {
            assert_eq!(is_own(label), expected, "{label}");
        }
    }
}
