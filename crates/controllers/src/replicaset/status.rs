//! The status of a ReplicaSet. Pure.

use std::sync::Arc;

use coracle_api::time::{Time, Timestamp};
use coracle_api::{Map, Value};
use coracle_client::Cached;

use super::plan::Observed;
use crate::views::{Pod, ReplicaSet};

/// The condition for pods that could not be created or deleted.
const REPLICA_FAILURE: &str = "ReplicaFailure";

/// Why pods could not be created or deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// `FailedCreate` or `FailedDelete`.
    pub reason: &'static str,
    /// The message.
    pub message: String,
}

/// Computes the status; `claimed` are its active pods.
pub fn status(
    observed: &Observed,
    claimed: &[Arc<Cached<Pod>>],
    failure: Option<&Failure>,
    now: Timestamp,
) -> Map {
    let set: &ReplicaSet = &observed.set;
    let count = |counts: &dyn Fn(&Pod) -> bool| claimed.iter().filter(|pod| counts(pod)).count();
    let is_mine = |pod: &&Arc<Cached<Pod>>| {
        let controller = pod
            .controller
            .as_ref()
            .is_some_and(|controller| controller.uid == observed.set.uid);
        controller && set.selects(&pod.labels)
    };

    let terminating = observed
        .pods
        .iter()
        .filter(is_mine)
        .filter(|pod| pod.is_terminating())
        .count();

    let mut status = set
        .object
        .get("status")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();

    let mut put = |name: &'static str, number: usize| {
        status.insert(name, i64::try_from(number).unwrap_or(i64::MAX));
    };
    put("replicas", claimed.len());
    put(
        "fullyLabeledReplicas",
        count(&|pod| is_fully_labeled(pod, set)),
    );

    put("readyReplicas", count(&Pod::is_ready));
    put(
        "availableReplicas",
        count(&|pod| pod.is_available(set.min_ready_seconds(), now)),
    );

    put("terminatingReplicas", terminating);

    // Zeros are omitted, except for `replicas`, which is required, and `observedGeneration`.
    for name in ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"] {
        if status.int(name) == 0 {
            status.remove(name);
        }
    }

    status.insert("observedGeneration", set.object.meta().generation());
    set_failure(&mut status, failure, now);

    status
}

/// Whether a pod has all labels of the template.
fn is_fully_labeled(pod: &Pod, set: &ReplicaSet) -> bool {
    let wanted = set.template_labels();
    wanted.is_none_or(|wanted| {
        wanted
            .iter()
            .all(|(key, value)| pod.labels.get(key) == Some(value))
    })
}

/// Sets or removes the failure condition; an equal one is left as it is.
fn set_failure(status: &mut Map, failure: Option<&Failure>, now: Timestamp) {
    let mut conditions = status.items("conditions").to_vec();
    let is_failure =
        |condition: &Value| condition.get("type").and_then(Value::as_str) == Some(REPLICA_FAILURE);

    let reported = conditions.iter().any(is_failure);
    match failure {
        None => conditions.retain(|condition| !is_failure(condition)),
        Some(failure) if !reported => {
            let mut condition = Map::new();
            condition.insert("type", REPLICA_FAILURE);
            condition.insert("status", "True");
            condition.insert("reason", failure.reason);
            condition.insert("message", failure.message.as_str());
            condition.insert("lastTransitionTime", Time(now).text());
            conditions.push(Value::Object(condition));
        }
        Some(_) => {}
    }

    match conditions.is_empty() {
        true => status.remove("conditions"),
        false => status.insert("conditions", conditions),
    };
}
