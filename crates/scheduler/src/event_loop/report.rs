//! Reports about pods: events, the condition `PodScheduled`, the nominated node, the journal.

use coracle_api::time::Time;
use coracle_api::{Map, Text, Value};
use coracle_client::{
    Access, Client, DeleteOptions, Error, EventType, Journal, ObjectReference, Patch, Resource,
    SeriesEvent, SeriesRecorder, Stage, Tasks, World,
};

use super::metrics::AttemptResult;
use crate::cycle::{Nomination, Placement};
use crate::pod::{Condition, Pod};

/// Why a pod has no node.
pub(super) struct FailureReport {
    /// The reason of the condition.
    reason: &'static str,
    message: String,
}

impl FailureReport {
    pub(super) fn unschedulable(message: String) -> FailureReport {
        FailureReport {
            reason: "Unschedulable",
            message,
        }
    }

    pub(super) fn error(message: String) -> FailureReport {
        FailureReport {
            reason: "SchedulerError",
            message,
        }
    }

    /// What the attempt counts as.
    pub(super) fn result(&self) -> AttemptResult {
        match self.reason {
            "Unschedulable" => AttemptResult::Unschedulable,
            _ => AttemptResult::Error,
        }
    }
}

/// Reports without blocking the event loop.
pub(super) struct Reporter {
    writer: Writer,
    journal: Journal,
    tasks: Tasks,
}

impl Reporter {
    pub(super) fn new(
        client: &Client,
        recorder: SeriesRecorder,
        journal: Journal,
        tasks: Tasks,
    ) -> Reporter {
        let pods = client.resource(&Resource::builtin("", "v1", "pods"));
        Reporter {
            writer: Writer {
                pods,
                recorder,
                world: client.world(),
            },
            journal,
            tasks,
        }
    }

    pub(super) fn random(&self) -> u64 {
        (self.writer.world.random)()
    }

    pub(super) fn writer(&self) -> Writer {
        self.writer.clone()
    }

    pub(super) fn skipped(&self, pod: &Pod) {
        let message = format!("skip schedule deleting pod: {}/{}", pod.namespace, pod.name);
        self.writer
            .recorder_of(pod)
            .record(&failure(&reference(pod)), message);
    }

    pub(super) fn placed(&self, pod: &Pod, placement: &Placement) {
        let Placement {
            node,
            evaluated,
            feasible,
        } = placement;
        self.note(
            pod,
            "schedule",
            format!("{node}, {feasible} feasible of {evaluated} evaluated"),
        );
    }

    pub(super) fn bound(&self, pod: &Pod) {
        let message = format!(
            "Successfully assigned {}/{} to {}",
            pod.namespace, pod.name, pod.node_name
        );

        let event = SeriesEvent {
            about: &reference(pod),
            related: None,
            kind: EventType::Normal,
            reason: "Scheduled",
            action: "Binding",
        };
        self.writer.recorder_of(pod).record(&event, message);

        self.note(pod, "bind", pod.node_name.to_string());
        tracing::debug!(pod = %pod.name, namespace = %pod.namespace, node = %pod.node_name, "pod bound");
    }

    pub(super) fn failed(&self, pod: &Pod, why: &FailureReport, nomination: &Nomination) {
        self.writer
            .recorder_of(pod)
            .record(&failure(&reference(pod)), shortened(&why.message));
        self.note(pod, "schedule", why.message.clone());
        let condition = Condition {
            status: Text::const_new("False"),
            reason: Text::const_new(why.reason),
            message: Text::new(&why.message),
        };

        if let Some(patch) = status_patch(pod, &condition, nomination, self.writer.world) {
            let (writer, pod) = (self.writer.clone(), ObjectName::of(pod));
            self.tasks
                .spawn(async move { writer.patch_status(&pod, patch).await });
        }
    }

    fn note(&self, pod: &Pod, what: &'static str, outcome: String) {
        let when = self.writer.world.now();
        self.journal.note(
            &pod.uid,
            Stage {
                when,
                who: "kube-scheduler",
                what,
                outcome,
            },
        );
    }
}

/// The event of a pod without a node.
fn failure(about: &ObjectReference) -> SeriesEvent<'_> {
    let (reason, action) = ("FailedScheduling", "Scheduling");
    SeriesEvent {
        about,
        related: None,
        kind: EventType::Warning,
        reason,
        action,
    }
}

/// Cuts a message to the limit of an event.
fn shortened(message: &str) -> String {
    if message.len() <= LONGEST_NOTE {
        return message.to_owned();
    }
    let end = message.floor_char_boundary(LONGEST_NOTE - DOTS.len());
    format!("{}{DOTS}", &message[..end])
}

const LONGEST_NOTE: usize = 1024;
const DOTS: &str = " ...";

fn reference(pod: &Pod) -> ObjectReference {
    ObjectReference {
        api_version: Text::const_new("v1"),
        kind: Text::const_new("Pod"),
        namespace: pod.namespace.clone(),
        name: pod.name.clone(),
        uid: pod.uid.clone(),
        resource_version: pod.resource_version.clone(),
        field_path: Text::default(),
    }
}

/// The patch of the pod's status; `None` if nothing changes.
fn status_patch(
    pod: &Pod,
    condition: &Condition,
    nomination: &Nomination,
    world: World,
) -> Option<Value> {
    let promised = match nomination {
        Nomination::Keep => None,
        Nomination::Clear => (!pod.nominated_node.is_empty()).then_some(Value::Null),
        Nomination::Set(node) => (pod.nominated_node != *node).then(|| Value::from(node.clone())),
    };

    let same = pod.scheduled.as_ref() == Some(condition);
    if same && promised.is_none() {
        return None;
    }

    let mut status = Map::new();
    if let Some(promised) = promised {
        status.insert("nominatedNodeName", promised);
    }

    if !same {
        let turned = pod
            .scheduled
            .as_ref()
            .is_none_or(|old| old.status != condition.status);

        status.insert(
            "conditions",
            vec![condition_tree(
                "PodScheduled",
                pod,
                condition,
                turned.then_some(world),
            )],
        );
    }

    Some(below_status(pod, status))
}

fn condition_tree(kind: &str, pod: &Pod, condition: &Condition, turned: Option<World>) -> Value {
    let mut tree = Map::new();
    tree.insert("type", kind);
    tree.insert("status", condition.status.clone());
    tree.insert("reason", condition.reason.clone());
    tree.insert("message", condition.message.clone());
    tree.insert("lastProbeTime", Value::Null);

    if pod.generation > 0 {
        tree.insert("observedGeneration", pod.generation);
    }
    if let Some(world) = turned {
        tree.insert("lastTransitionTime", Time(world.now()).text());
    }

    Value::Object(tree)
}

/// The UID prevents that the patch applies to another pod of the same name.
fn below_status(pod: &Pod, status: Map) -> Value {
    let mut patch = Map::new();
    patch.object_mut("metadata").insert("uid", pod.uid.clone());
    patch.insert("status", status);
    Value::Object(patch)
}

/// The pod whose status is written.
struct ObjectName {
    namespace: Text,
    name: Text,
}

impl ObjectName {
    fn of(pod: &Pod) -> ObjectName {
        ObjectName {
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
        }
    }
}

/// Writes to the API, in tasks.
#[derive(Clone)]
pub(super) struct Writer {
    pods: Access,
    recorder: SeriesRecorder,
    world: World,
}

impl Writer {
    /// Events are reported by the scheduler name of the pod.
    fn recorder_of(&self, pod: &Pod) -> SeriesRecorder {
        self.recorder.clone().controller(&pod.scheduler_name)
    }

    async fn patch_status(&self, pod: &ObjectName, patch: Value) {
        let pods = self
            .pods
            .clone()
            .namespace(&pod.namespace)
            .subresource("status");
        if let Err(error) = pods.patch(&pod.name, &Patch::Strategic(patch)).await {
            tracing::debug!(%error, pod = %pod.name, namespace = %pod.namespace, "cannot update pod status");
        }
    }

    /// Clears the nominated node.
    pub(super) async fn clear_nomination(&self, pod: &Pod) {
        if !pod.nominated_node.is_empty() {
            let mut status = Map::new();
            status.insert("nominatedNodeName", Value::Null);
            self.patch_status(&ObjectName::of(pod), below_status(pod, status))
                .await;
        }
    }

    /// Sets the condition on a victim and deletes it. Returns whether that succeeded; a pod that no
    /// longer exists counts as deleted.
    pub(super) async fn evict(&self, victim: &Pod, for_whom: &Pod, node: &str) -> bool {
        let deleted = match self.mark_and_delete(victim, for_whom).await {
            Ok(()) => true,
            Err(error) if error.is_not_found() => return true,
            Err(error) => {
                tracing::warn!(%error, pod = %victim.name, namespace = %victim.namespace, "cannot evict pod");
                return false;
            }
        };

        let message = format!("Preempted by pod {} on node {node}", for_whom.uid);

        let event = SeriesEvent {
            about: &reference(victim),
            related: Some(&reference(for_whom)),
            kind: EventType::Normal,
            reason: "Preempted",
            action: "Preempting",
        };
        self.recorder_of(for_whom).record(&event, message);

        deleted
    }

    async fn mark_and_delete(&self, victim: &Pod, for_whom: &Pod) -> Result<(), Error> {
        let scheduler = &for_whom.scheduler_name;
        let condition = Condition {
            status: Text::const_new("True"),
            reason: Text::const_new("PreemptionByScheduler"),
            message: Text::from(format!(
                "{scheduler}: preempting to accommodate a higher priority pod"
            )),
        };

        let mut status = Map::new();
        status.insert(
            "conditions",
            vec![condition_tree(
                "DisruptionTarget",
                victim,
                &condition,
                Some(self.world),
            )],
        );

        let pods = self.pods.clone().namespace(&victim.namespace);
        let marking = Patch::Strategic(below_status(victim, status));
        pods.clone()
            .subresource("status")
            .patch(&victim.name, &marking)
            .await?;

        pods.delete(&victim.name, &DeleteOptions::only(&victim.uid))
            .await
            .map(|_| ())
    }
}
