//! Conditions, taints and labels of a node. Pure.

use std::sync::Arc;

use coracle_api::time::{Duration, Timestamp};
use coracle_api::{Text, Value};
use coracle_client::Cached;

use super::Config;
use crate::views::{Node, Pod};

/// Taints by condition: the condition, its status, the key.
const CONDITION_TAINTS: &[(&str, &str, &str)] = &[
    ("Ready", "False", NOT_READY),
    ("Ready", "Unknown", UNREACHABLE),
    (
        "MemoryPressure",
        "True",
        "node.kubernetes.io/memory-pressure",
    ),
    ("DiskPressure", "True", "node.kubernetes.io/disk-pressure"),
    (
        "NetworkUnavailable",
        "True",
        "node.kubernetes.io/network-unavailable",
    ),
    ("PIDPressure", "True", "node.kubernetes.io/pid-pressure"),
];
const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
const NO_SCHEDULE: &str = "NoSchedule";
const NO_EXECUTE: &str = "NoExecute";
/// The conditions that become unknown without heartbeat. The kubelet does not set
/// `NetworkUnavailable`.
const OWN_CONDITIONS: &[&str] = &["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];
/// Labels that are copied to and from their deprecated names.
const LABELS: &[(&str, &str)] = &[
    ("kubernetes.io/os", "beta.kubernetes.io/os"),
    ("kubernetes.io/arch", "beta.kubernetes.io/arch"),
];

/// All that was observed of a node.
#[derive(Debug)]
pub struct Observed {
    /// The node.
    pub node: Arc<Cached<Node>>,
    /// The last observed heartbeat.
    pub last_heartbeat: Timestamp,
    /// Grace periods.
    pub config: Config,
    /// All nodes seem to be down: no pods are evicted.
    pub all_down: bool,
    /// Its pods, if they are to be marked as not ready: its readiness has just ended.
    pub to_mark: Option<Vec<Arc<Cached<Pod>>>>,
}

/// What to do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Conditions that become unknown.
    pub unknown: Vec<Unknown>,
    /// Missing labels.
    pub labels: Vec<(&'static str, Text)>,
    /// Its taints, if they change.
    pub taints: Option<Taints>,
    /// Pods to mark as not ready.
    pub unready: Vec<Arc<Cached<Pod>>>,
    /// When its grace period ends.
    pub look_after: Option<std::time::Duration>,
}

/// A condition that becomes unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    pub kind: &'static str,
    pub reason: &'static str,
    pub message: &'static str,
    /// The heartbeat, if the condition was never set.
    pub heartbeat: Option<Timestamp>,
}

/// The taints of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Taints {
    /// Taints that stay.
    pub keep: Vec<Value>,
    /// Keys with effect `NoSchedule`.
    pub no_schedule: Vec<&'static str>,
    /// The key with effect `NoExecute`.
    pub no_execute: Option<&'static str>,
    /// Whether that one waits for the zone's rate limit: there was none before.
    pub waits: bool,
    /// Whether any other taint changes.
    pub others_change: bool,
}

/// Decides what the node needs.
pub fn plan(observed: &Observed, now: Timestamp) -> Plan {
    let node = &observed.node;
    let (since, patience) = match node.condition("Ready") {
        None => (
            node.created
                .unwrap_or(observed.last_heartbeat)
                .max(observed.last_heartbeat),
            observed.config.startup_grace,
        ),
        Some(_) => (observed.last_heartbeat, observed.config.monitor_grace),
    };
    let deadline = since + Duration::from(patience);

    let mut plan = Plan {
        unready: unready(observed),
        ..Plan::default()
    };

    if deadline <= now {
        plan.unknown = unknown(node);
    } else {
        plan.look_after = deadline.since(now).to_std();
    }

    plan.labels = labels(node);
    plan.taints = taints(observed);

    plan
}

fn unready(observed: &Observed) -> Vec<Arc<Cached<Pod>>> {
    let pods = observed.to_mark.iter().flatten();
    pods.filter(|pod| pod.is_ready()).cloned().collect()
}

/// The conditions that become unknown.
fn unknown(node: &Node) -> Vec<Unknown> {
    let one = |kind: &&'static str| match node.condition(kind) {
        Some("Unknown") => None,
        Some(_) => Some(Unknown {
            kind,
            reason: "NodeStatusUnknown",
            message: "Kubelet stopped posting node status.",
            heartbeat: None,
        }),
        None => Some(Unknown {
            kind,
            reason: "NodeStatusNeverUpdated",
            message: "Kubelet never posted node status.",
            heartbeat: node.created,
        }),
    };

    OWN_CONDITIONS.iter().filter_map(one).collect()
}

fn labels(node: &Node) -> Vec<(&'static str, Text)> {
    let lacking = |(name, former): &(&'static str, &'static str)| {
        let value = node.labels.str(name)?;
        (node.labels.str(former) != Some(value)).then(|| (*former, Text::new(value)))
    };
    LABELS.iter().filter_map(lacking).collect()
}

fn taints(observed: &Observed) -> Option<Taints> {
    let node = &observed.node;
    let condition = |(kind, status, key): &(&str, &str, &'static str)| {
        (node.condition(kind) == Some(*status)).then_some(*key)
    };
    let mut no_schedule: Vec<&'static str> =
        CONDITION_TAINTS.iter().filter_map(condition).collect();
    no_schedule.extend(node.unschedulable.then_some(UNSCHEDULABLE));

    let ready = node.condition("Ready");
    let no_execute = match ready {
        _ if observed.all_down => None,
        Some("False") => Some(NOT_READY),
        Some("Unknown") => Some(UNREACHABLE),
        _ => None,
    };

    let has = |key: &str, effect: &str| node.taints.iter().any(|taint| is(taint, key, effect));
    let drove = has(NOT_READY, NO_EXECUTE) || has(UNREACHABLE, NO_EXECUTE);

    let keep = |taint: &&Value| {
        let ours = follows(taint, &no_schedule)
            || no_execute.is_some_and(|key| is(taint, key, NO_EXECUTE));
        // Without a `Ready` condition, existing `NoExecute` taints are kept.
        let undecided = ready.is_none() && !observed.all_down && drives(taint);
        ours || undecided || !(drives(taint) || is_by_condition(taint))
    };
    let kept: Vec<Value> = node.taints.iter().filter(keep).cloned().collect();

    no_schedule.retain(|key| !has(key, NO_SCHEDULE));
    let no_execute = no_execute.filter(|key| !has(key, NO_EXECUTE));
    let others_change = kept.len() != node.taints.len() || !no_schedule.is_empty();

    (others_change || no_execute.is_some()).then_some(Taints {
        keep: kept,
        no_schedule,
        no_execute,
        waits: !drove,
        others_change,
    })
}

fn is(taint: &Value, key: &str, effect: &str) -> bool {
    let text = |name: &str| taint.get(name).and_then(Value::as_str).unwrap_or_default();
    text("key") == key && text("effect") == effect
}

/// Whether a taint follows from a current condition.
fn follows(taint: &Value, no_schedule: &[&str]) -> bool {
    no_schedule.iter().any(|key| is(taint, key, NO_SCHEDULE))
}

/// Whether a taint follows from conditions at all.
fn is_by_condition(taint: &Value) -> bool {
    is(taint, UNSCHEDULABLE, NO_SCHEDULE)
        || CONDITION_TAINTS
            .iter()
            .any(|(_, _, key)| is(taint, key, NO_SCHEDULE))
}

/// Whether a taint evicts pods because of the node's readiness.
fn drives(taint: &Value) -> bool {
    is(taint, NOT_READY, NO_EXECUTE) || is(taint, UNREACHABLE, NO_EXECUTE)
}
