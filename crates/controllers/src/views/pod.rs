//! The projection of a pod for workload controllers: about two hundred bytes instead of some
//! thousands.

use std::sync::Arc;
use std::time::Duration;

use coracle_api::meta::ObjectMeta;
use coracle_api::time::{Time, Timestamp};
use coracle_api::typed::TypedError;
use coracle_api::{Map, Text, Value};
use coracle_client::ownership::Controller;
use coracle_client::{Cached, ObjectReference, Projection};

use super::{end, orphans_of};

/// The fields of a pod that controllers need to rank and count it.
#[derive(Clone, Debug, PartialEq)]
pub struct Pod {
    /// Its labels.
    pub labels: Map,
    /// Its controller.
    pub controller: Option<Controller>,
    /// Whether it is being deleted.
    pub is_being_deleted: bool,
    /// Its generation.
    pub generation: i64,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// Its phase.
    pub phase: Phase,
    /// Its node; empty if not scheduled.
    pub node: Text,
    /// Whether it is ready, and since when it is or is not.
    pub ready: Option<(bool, Option<Timestamp>)>,
    /// The deletion cost from its annotation.
    pub deletion_cost: i32,
    /// The highest restart count of its containers.
    pub restarts: i64,
    /// The highest restart count of its sidecars.
    pub sidecar_restarts: i64,
    /// Its tolerations, as in the object.
    pub tolerations: Vec<Value>,
    /// Whether the kubelet evicted it.
    pub is_evicted: bool,
    /// Its IP addresses.
    pub ips: Vec<Text>,
    /// Its hostname below its subdomain, if it has one.
    pub hostname: Text,
    /// The headless Service below which it has its name.
    pub subdomain: Text,
    /// The named ports of its containers.
    pub ports: Vec<NamedPort>,
    /// The sum of the restarts of its containers.
    pub all_restarts: i64,
    /// The node that its affinity requires by name, as pods of DaemonSets do; empty if none.
    pub bound_for: Text,
    /// Whether a Job has yet to count it.
    pub is_tracked: bool,
    /// Its index in an indexed Job, with the failures of earlier pods.
    pub index: Option<JobIndex>,
    /// When and how it ended, if it has ended or is being deleted.
    pub end: Option<Box<End>>,
    /// Since when it has a `DisruptionTarget` condition that the kubelet did not set.
    pub disrupted_since: Option<Timestamp>,
}

impl Pod {
    /// The `DisruptionTarget` condition: true with a reason and message, or false.
    pub fn disruption(&self, why: Option<(&str, &str)>, now: Timestamp) -> Value {
        let (reason, message) = why.unzip();
        let mut condition = Map::new();
        condition.insert("type", "DisruptionTarget");
        condition.insert("observedGeneration", self.generation);
        condition.insert("status", if why.is_some() { "True" } else { "False" });
        condition.insert("reason", reason.map_or(Value::Null, Value::from));
        condition.insert("message", message.map_or(Value::Null, Value::from));
        condition.insert("lastTransitionTime", Time(now).text());
        Value::Object(condition)
    }
}

/// A named port of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedPort {
    /// The name.
    pub name: Text,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: Text,
    /// The number.
    pub port: i64,
}

/// The index of a pod in an indexed Job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobIndex {
    /// The index.
    pub index: u32,
    /// How many earlier pods of this index have failed.
    pub failures: u32,
    /// How many earlier failures the Job ignores.
    pub ignored_failures: u32,
}

/// How a pod ended.
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    /// When.
    pub at: Timestamp,
    /// The terminated containers with their exit codes; init containers are last.
    pub exit_codes: Vec<(Text, i64)>,
    /// The conditions with their status.
    pub conditions: Vec<(Text, Text)>,
}

/// The finalizer of pods that a Job has yet to count.
pub const JOB_TRACKING: &str = "batch.kubernetes.io/job-tracking";
/// The annotation and label with the completion index.
pub const JOB_INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// How many earlier pods of this index have failed.
pub const JOB_INDEX_FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
/// How many earlier failures the Job ignores.
pub const JOB_INDEX_IGNORED_FAILURES: &str = "batch.kubernetes.io/job-index-ignored-failure-count";

/// The phase of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Not all containers have started.
    Pending,
    /// It runs.
    Running,
    /// All containers have ended successfully.
    Succeeded,
    /// All containers have ended, some of them with an error.
    Failed,
    /// The state is unknown.
    Unknown,
}

impl Pod {
    /// Whether it has neither ended nor is being deleted.
    pub fn is_active(&self) -> bool {
        !self.has_ended() && !self.is_being_deleted
    }

    /// Whether it is being deleted and has not ended.
    pub fn is_terminating(&self) -> bool {
        !self.has_ended() && self.is_being_deleted
    }

    /// Whether it has succeeded or failed.
    pub fn has_ended(&self) -> bool {
        matches!(self.phase, Phase::Succeeded | Phase::Failed)
    }

    /// Whether it is ready.
    pub fn is_ready(&self) -> bool {
        self.ready.is_some_and(|(ready, _)| ready)
    }

    /// Since when it has been ready.
    pub fn ready_since(&self) -> Option<Timestamp> {
        self.ready
            .and_then(|(ready, since)| since.filter(|_| ready))
    }

    /// When it will have been ready for this many seconds; `None` if it is not ready.
    pub fn available_at(&self, min_ready_seconds: i64) -> Option<Timestamp> {
        if !self.is_ready() {
            return None;
        }
        match min_ready_seconds {
            0 => Some(Timestamp::ZERO),
            seconds => self.ready_since().map(|since| since.plus_seconds(seconds)),
        }
    }

    /// Whether it has been ready for this many seconds.
    pub fn is_available(&self, min_ready_seconds: i64, now: Timestamp) -> bool {
        self.available_at(min_ready_seconds)
            .is_some_and(|at| at <= now)
    }

    /// Its node, or the only node it can be scheduled to; empty if any.
    pub fn target(&self) -> &Text {
        if self.node.is_empty() {
            &self.bound_for
        } else {
            &self.node
        }
    }

    /// Its key in the index [`BY_CONTROLLER`](super::BY_CONTROLLER).
    pub fn by_controller(pod: &Cached<Pod>) -> Vec<Text> {
        vec![match &pod.controller {
            Some(controller) => controller.uid.clone(),
            None => Text::from(orphans_of(&pod.key.namespace)),
        }]
    }

    /// The reference for events about it.
    pub fn reference(pod: &Cached<Pod>) -> ObjectReference {
        ObjectReference {
            api_version: Text::new("v1"),
            kind: Text::new("Pod"),
            namespace: pod.key.namespace.clone(),
            name: pod.key.name.clone(),
            uid: pod.uid.clone(),
            resource_version: Text::from(pod.version.to_string()),
            field_path: Text::default(),
        }
    }

    /// Its key in the index [`BY_NODE`](super::BY_NODE).
    pub fn by_node(pod: &Cached<Pod>) -> Vec<Text> {
        if pod.node.is_empty() {
            Vec::new()
        } else {
            vec![pod.node.clone()]
        }
    }
}

/// When the next ready pod that is not yet available becomes available.
pub fn next_available<'a>(
    pods: impl IntoIterator<Item = &'a Arc<Cached<Pod>>>,
    min_ready_seconds: i64,
    now: Timestamp,
) -> Option<Duration> {
    let due = pods
        .into_iter()
        .filter_map(|pod| pod.available_at(min_ready_seconds));
    due.filter(|at| *at > now).min()?.since(now).to_std()
}

impl Projection for Pod {
    fn project(object: &Arc<Value>) -> Result<Pod, TypedError> {
        let meta = object.meta();
        let status = object.get("status").and_then(Value::as_object);
        let spec = object.get("spec").and_then(Value::as_object);
        let statuses = |name: &str| status.map(|status| status.items(name)).unwrap_or_default();
        let cost = meta.annotation("controller.kubernetes.io/pod-deletion-cost");

        Ok(Pod {
            labels: meta.labels().cloned().unwrap_or_default(),
            controller: Controller::of(meta),
            is_being_deleted: meta.is_being_deleted(),
            generation: meta.generation(),
            created: meta.creation_timestamp(),
            phase: phase(
                status
                    .map(|status| status.text("phase"))
                    .unwrap_or_default(),
            ),
            node: Text::new(spec.map(|spec| spec.text("nodeName")).unwrap_or_default()),
            ready: statuses("conditions").iter().find_map(ready),
            deletion_cost: cost.and_then(|cost| cost.parse().ok()).unwrap_or_default(),
            restarts: most_restarts(statuses("containerStatuses"), |_| true),
            sidecar_restarts: most_restarts(statuses("initContainerStatuses"), |name| {
                is_sidecar(spec, name)
            }),
            tolerations: spec
                .map(|spec| spec.items("tolerations").to_vec())
                .unwrap_or_default(),
            is_evicted: status.is_some_and(|status| status.text("reason") == "Evicted"),
            ips: ips(status),
            hostname: Text::new(spec.map(|spec| spec.text("hostname")).unwrap_or_default()),
            subdomain: Text::new(spec.map(|spec| spec.text("subdomain")).unwrap_or_default()),
            ports: named_ports(spec),
            all_restarts: all_restarts(statuses("containerStatuses"))
                + all_restarts(statuses("initContainerStatuses")),
            bound_for: Text::new(spec.and_then(bound_for).unwrap_or_default()),
            is_tracked: meta.has_finalizer(JOB_TRACKING),
            index: job_index(meta),
            end: end::of(object).map(Box::new),
            disrupted_since: statuses("conditions").iter().find_map(disrupted_since),
        })
    }
}

fn phase(text: &str) -> Phase {
    match text {
        "Running" => Phase::Running,
        "Succeeded" => Phase::Succeeded,
        "Failed" => Phase::Failed,
        "Unknown" => Phase::Unknown,
        _ => Phase::Pending,
    }
}

fn ready(condition: &Value) -> Option<(bool, Option<Timestamp>)> {
    let condition = condition
        .as_object()
        .filter(|condition| condition.text("type") == "Ready")?;
    let since = Time::parse(condition.text("lastTransitionTime"))
        .ok()
        .map(|time| time.0);
    Some((condition.text("status") == "True", since))
}

fn disrupted_since(condition: &Value) -> Option<Timestamp> {
    let condition = condition
        .as_object()
        .filter(|one| one.text("type") == "DisruptionTarget")?;
    let is_said =
        condition.text("status") == "True" && condition.text("reason") != "TerminationByKubelet";
    Time::parse(condition.text("lastTransitionTime"))
        .ok()
        .map(|time| time.0)
        .filter(|_| is_said)
}

fn most_restarts(statuses: &[Value], counts: impl Fn(&str) -> bool) -> i64 {
    let statuses = statuses.iter().filter_map(Value::as_object);
    let counted = statuses.filter(|status| counts(status.text("name")));
    counted
        .map(|status| status.int("restartCount"))
        .max()
        .unwrap_or_default()
}

fn all_restarts(statuses: &[Value]) -> i64 {
    statuses
        .iter()
        .filter_map(Value::as_object)
        .map(|status| status.int("restartCount"))
        .sum()
}

/// The node name that the required node affinity asks for, if any.
fn bound_for(spec: &Map) -> Option<&str> {
    let required = spec.below("affinity")?.below("nodeAffinity")?;
    let required = required.below("requiredDuringSchedulingIgnoredDuringExecution")?;
    required.items("nodeSelectorTerms").iter().find_map(|term| {
        let fields = term
            .as_object()?
            .items("matchFields")
            .iter()
            .filter_map(Value::as_object);

        let mut named = fields.filter(|field| {
            field.text("key") == "metadata.name"
                && field.text("operator") == "In"
                && field.items("values").len() == 1
        });

        named.next()?.items("values")[0].as_str()
    })
}

fn job_index(meta: ObjectMeta<'_>) -> Option<JobIndex> {
    let number = |name: &str| {
        meta.annotation(name)
            .and_then(|text| text.parse::<u32>().ok())
    };
    Some(JobIndex {
        index: number(JOB_INDEX)?,
        failures: number(JOB_INDEX_FAILURES).unwrap_or_default(),
        ignored_failures: number(JOB_INDEX_IGNORED_FAILURES).unwrap_or_default(),
    })
}

/// Whether an init container restarts always.
pub(super) fn is_sidecar(spec: Option<&Map>, name: &str) -> bool {
    let containers = spec
        .map(|spec| spec.items("initContainers"))
        .unwrap_or_default();
    let mut containers = containers.iter().filter_map(Value::as_object);
    containers.any(|container| {
        container.text("name") == name && container.text("restartPolicy") == "Always"
    })
}

fn ips(status: Option<&Map>) -> Vec<Text> {
    let Some(status) = status else {
        return Vec::new();
    };
    let several = status
        .items("podIPs")
        .iter()
        .filter_map(|ip| ip.get("ip")?.as_str());

    let several: Vec<Text> = several.filter(|ip| !ip.is_empty()).map(Text::new).collect();
    match (several.is_empty(), status.text("podIP")) {
        (true, ip) if !ip.is_empty() => vec![Text::new(ip)],
        _ => several,
    }
}

/// The ports of its containers and sidecars.
fn named_ports(spec: Option<&Map>) -> Vec<NamedPort> {
    let Some(spec) = spec else { return Vec::new() };
    let containers = spec.items("containers").iter().filter_map(Value::as_object);

    let sidecars = spec
        .items("initContainers")
        .iter()
        .filter_map(Value::as_object);
    let sidecars = sidecars.filter(|container| container.text("restartPolicy") == "Always");

    let ports = containers
        .chain(sidecars)
        .flat_map(|container| container.items("ports"));
    let ports = ports
        .filter_map(Value::as_object)
        .filter(|port| !port.text("name").is_empty());

    ports
        .map(|port| NamedPort {
            name: Text::new(port.text("name")),
            protocol: Text::new(if port.text("protocol").is_empty() {
                "TCP"
            } else {
                port.text("protocol")
            }),
            port: port.int("containerPort"),
        })
        .collect()
}
