//! The projection of a pod: enough to know its stage, and to write its status.

use std::net::IpAddr;
use std::sync::Arc;

use coracle_api::meta::ObjectMeta;
use coracle_api::time::{Duration, Time, Timestamp};
use coracle_api::typed::TypedError;
use coracle_api::{Map, Text, Value};
use coracle_client::Projection;

use crate::profile::SIMULATE;

/// A pod on a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Pod {
    pub(crate) node: Text,
    pub(crate) generation: i64,
    /// The value of its annotation.
    pub(crate) profile: Option<Text>,
    pub(crate) restart: Restart,
    pub(crate) host_network: bool,
    pub(crate) init: Vec<Container>,
    pub(crate) containers: Vec<Container>,
    pub(crate) deletion: Option<Deletion>,
    pub(crate) phase: Phase,
    pub(crate) start_time: Option<Timestamp>,
    /// Its addresses, once assigned: they stay.
    pub(crate) ips: Vec<IpAddr>,
    /// Since when its containers run, if they do.
    pub(crate) running_since: Option<Timestamp>,
    pub(crate) containers_ready: bool,
    pub(crate) restarts: i64,
    /// When its containers last ended.
    pub(crate) last_end: Option<Timestamp>,
    pub(crate) conditions: Vec<Condition>,
    /// Its readiness gates.
    pub(crate) gates: Vec<Text>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Container {
    pub(crate) name: Text,
    pub(crate) image: Text,
    /// An init container that restarts always.
    pub(crate) is_sidecar: bool,
}

/// The restart policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Restart {
    #[default]
    Always,
    OnFailure,
    Never,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    #[default]
    Pending,
    Running,
    /// Succeeded or failed.
    Terminal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Deletion {
    /// When the deletion was requested.
    pub(crate) asked: Timestamp,
    pub(crate) grace: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) kind: Text,
    pub(crate) is_true: bool,
    pub(crate) since: Text,
}

impl Pod {
    /// Whether a condition exists and is true.
    pub(crate) fn has(&self, kind: &str) -> bool {
        self.conditions
            .iter()
            .any(|condition| condition.kind == kind && condition.is_true)
    }

    /// Whether all readiness gates are true.
    pub(crate) fn gates_are_open(&self) -> bool {
        self.gates.iter().all(|gate| self.has(gate))
    }
}

impl Projection for Pod {
    fn project(object: &Arc<Value>) -> Result<Pod, TypedError> {
        let empty = Map::new();
        let below = |name: &str| {
            object
                .get(name)
                .and_then(Value::as_object)
                .unwrap_or(&empty)
        };
        let (meta, spec, status) = (object.meta(), below("spec"), below("status"));
        let statuses = status.items("containerStatuses");

        let ready =
            |container: &Value| container.get("ready").and_then(Value::as_bool) == Some(true);
        let gate = |gate: &Value| {
            gate.get("conditionType")
                .and_then(Value::as_str)
                .map(Text::new)
        };

        Ok(Pod {
            node: Text::new(spec.text("nodeName")),
            generation: meta.generation(),
            profile: meta.annotation(SIMULATE).map(Text::new),
            restart: match spec.text("restartPolicy") {
                "Never" => Restart::Never,
                "OnFailure" => Restart::OnFailure,
                _ => Restart::Always,
            },
            host_network: spec.flag("hostNetwork"),
            init: spec
                .items("initContainers")
                .iter()
                .filter_map(container)
                .collect(),
            containers: spec
                .items("containers")
                .iter()
                .filter_map(container)
                .collect(),
            deletion: deletion(meta),
            phase: match status.text("phase") {
                "Succeeded" | "Failed" => Phase::Terminal,
                "Running" => Phase::Running,
                _ => Phase::Pending,
            },
            start_time: time(status.text("startTime")),
            ips: status.items("podIPs").iter().filter_map(ip).collect(),
            running_since: statuses
                .iter()
                .find_map(|one| time_at(one, &["state", "running", "startedAt"])),
            containers_ready: !statuses.is_empty() && statuses.iter().all(ready),
            restarts: statuses
                .iter()
                .filter_map(|one| one.get("restartCount")?.as_int())
                .max()
                .unwrap_or(0),
            last_end: statuses
                .iter()
                .find_map(|one| time_at(one, &["lastState", "terminated", "finishedAt"])),
            conditions: status
                .items("conditions")
                .iter()
                .filter_map(condition)
                .collect(),
            gates: spec
                .items("readinessGates")
                .iter()
                .filter_map(gate)
                .collect(),
        })
    }
}

fn deletion(meta: ObjectMeta<'_>) -> Option<Deletion> {
    let grace = Duration::from_secs(meta.deletion_grace_period_seconds().unwrap_or_default());
    meta.deletion_timestamp().map(|until| Deletion {
        asked: until - grace,
        grace,
    })
}

fn ip(ip: &Value) -> Option<IpAddr> {
    ip.get("ip").and_then(Value::as_str)?.parse().ok()
}

fn container(container: &Value) -> Option<Container> {
    let container = container.as_object()?;
    Some(Container {
        name: Text::new(container.text("name")),
        image: Text::new(container.text("image")),
        is_sidecar: container.text("restartPolicy") == "Always",
    })
}

fn condition(condition: &Value) -> Option<Condition> {
    let condition = condition.as_object()?;
    Some(Condition {
        kind: Text::new(condition.text("type")),
        is_true: condition.text("status") == "True",
        since: Text::new(condition.text("lastTransitionTime")),
    })
}

fn time(text: &str) -> Option<Timestamp> {
    Time::parse(text).ok().map(|time| time.0)
}

fn time_at(value: &Value, path: &[&str]) -> Option<Timestamp> {
    value.at(path).and_then(Value::as_str).and_then(time)
}
