//! Which nodes a DaemonSet needs a pod on, and the pod for a node. Pure.

use coracle_api::node_affinity::{NodeView, RequiredNodeAffinity};
use coracle_api::taint::{Taint, Toleration, effect, find_untolerated};
use coracle_api::{Map, Value};
use coracle_client::Cached;

use super::HASH;
use crate::pods::Owner;
use crate::template;
use crate::views::{DaemonSet, Node};

/// The label that identified a pod's template before there were revisions.
pub(super) const GENERATION: &str = "pod-template-generation";

/// The taints that every DaemonSet pod tolerates: key, effect, and whether only with host
/// networking.
const TOLERATED: [(&str, &str, bool); 7] = [
    ("node.kubernetes.io/not-ready", effect::NO_EXECUTE, false),
    ("node.kubernetes.io/unreachable", effect::NO_EXECUTE, false),
    (
        "node.kubernetes.io/disk-pressure",
        effect::NO_SCHEDULE,
        false,
    ),
    (
        "node.kubernetes.io/memory-pressure",
        effect::NO_SCHEDULE,
        false,
    ),
    (
        "node.kubernetes.io/pid-pressure",
        effect::NO_SCHEDULE,
        false,
    ),
    (
        "node.kubernetes.io/unschedulable",
        effect::NO_SCHEDULE,
        false,
    ),
    (
        "node.kubernetes.io/network-unavailable",
        effect::NO_SCHEDULE,
        true,
    ),
];

/// Whether a pod of a DaemonSet belongs on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// A pod should run there.
    Runs,
    /// None is created there, but a running one may stay.
    Stays,
    /// None may run there.
    No,
}

/// The scheduling constraints of a DaemonSet, computed once for all nodes.
pub struct Constraints {
    node_name: String,
    affinity: RequiredNodeAffinity,
    tolerations: Vec<Value>,
}

impl Constraints {
    /// Reads the constraints from the pod template.
    pub fn of(set: &DaemonSet) -> Constraints {
        let spec = set
            .template()
            .and_then(|template| template.get("spec"))
            .cloned()
            .unwrap_or_default();

        let node_name = spec
            .get("nodeName")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_string();

        Constraints {
            node_name,
            affinity: RequiredNodeAffinity::from_pod_spec(&spec),
            tolerations: tolerations(&spec),
        }
    }

    /// Whether a pod should run on a node.
    pub fn fit(&self, node: &Cached<Node>) -> Fit {
        let name = node.key.name.as_str();
        if !self.node_name.is_empty() && self.node_name != name {
            return Fit::No;
        }

        // Invalid constraints match no node.
        if !self
            .affinity
            .matches(&NodeView {
                name,
                labels: &node.labels,
            })
            .unwrap_or_default()
        {
            return Fit::No;
        }

        let tolerations: Vec<Toleration<'_>> = self
            .tolerations
            .iter()
            .map(Toleration::from_value)
            .collect();

        let untolerated = |evicts_only: bool| {
            let taints =
                node.taints
                    .iter()
                    .map(Taint::from_value)
                    .filter(|taint| match evicts_only {
                        true => taint.effect == effect::NO_EXECUTE,
                        false => taint.repels(),
                    });

            find_untolerated(taints, &tolerations, COMPARISONS).is_some()
        };

        match (untolerated(false), untolerated(true)) {
            (false, _) => Fit::Runs,
            (true, false) => Fit::Stays,
            (true, true) => Fit::No,
        }
    }
}

/// The feature gate `TaintTolerationComparisonOperators`, which is off.
const COMPARISONS: bool = false;

/// The tolerations of a pod spec with those that every DaemonSet pod has.
fn tolerations(spec: &Value) -> Vec<Value> {
    let mut all = spec
        .get("tolerations")
        .and_then(Value::as_array)
        .unwrap_or_default()
        .to_vec();

    let on_host = spec
        .get("hostNetwork")
        .and_then(Value::as_bool)
        .unwrap_or_default();

    for (key, effect, only_on_host) in TOLERATED {
        if only_on_host && !on_host {
            continue;
        }

        let mut added = Map::new();
        added.insert("key", key);
        added.insert("operator", "Exists");
        added.insert("effect", effect);
        let added = Value::Object(added);
        let is_same = |there: &Value| {
            let same = |name: &str| there.get(name) == added.get(name);
            same("key") && same("operator") && same("effect") && same("value")
        };

        match all.iter_mut().find(|there| is_same(there)) {
            Some(there) => *there = added,
            None => all.push(added),
        }
    }

    all
}

/// Builds the pod for a node; `None` if the template has no labels.
pub(super) fn new_pod(set: &DaemonSet, owner: &Owner, node: &str, hash: &str) -> Option<Value> {
    let base = format!("{}-", owner.key.name);
    let mut pod = template::build_pod(
        set.template()?,
        &owner.key.namespace,
        &base,
        owner.controller.reference(),
    )?;

    let mut meta = pod.meta_mut();
    if let Some(generation) = set.template_generation() {
        meta.set_label(GENERATION, Some(generation));
    }

    meta.set_label(HASH, Some(hash));
    let added = tolerations(pod.get("spec")?);
    let spec = pod.as_object_mut()?.object_mut("spec");
    spec.insert("tolerations", added);
    let affinity = spec.object_mut("affinity").object_mut("nodeAffinity");
    affinity.insert("requiredDuringSchedulingIgnoredDuringExecution", only(node));

    Some(pod)
}

/// The affinity to exactly one node. It replaces the template's own, which the node is known to
/// match.
fn only(node: &str) -> Map {
    let mut field = Map::new();
    field.insert("key", "metadata.name");
    field.insert("operator", "In");
    field.insert("values", vec![Value::string(node)]);
    let mut term = Map::new();
    term.insert("matchFields", vec![Value::Object(field)]);
    let mut selector = Map::new();
    selector.insert("nodeSelectorTerms", vec![Value::Object(term)]);
    selector
}
