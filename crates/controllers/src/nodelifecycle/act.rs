//! Carries out the plan.

use coracle_api::time::{Time, Timestamp};
use coracle_api::{Map, Value};
use coracle_client::{Cached, Error, ObjectKey, Patch};

use super::NodeLifecycle;
use super::plan::{Observed, Plan, Taints, Unknown};
use crate::framework::Requeue;
use crate::views::{Node, Pod};

/// Why a plan could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    #[error("cannot update node status")]
    Status(#[source] Error),
    #[error("cannot update node taints and labels")]
    Node(#[source] Error),
    #[error("cannot mark pod {0} as not ready")]
    Pod(ObjectKey, #[source] Error),
}

impl NodeLifecycle {
    pub(super) async fn carry_out(
        &self,
        key: &ObjectKey,
        observed: &Observed,
        plan: Plan,
    ) -> Result<Requeue, ActError> {
        let now = self.world.now();
        if !plan.unknown.is_empty() {
            let patch = Patch::Strategic(unknown(&plan.unknown, &observed.node, now));
            let status = self.node_access.clone().subresource("status");
            status
                .patch(&key.name, &patch)
                .await
                .map_err(ActError::Status)?;
            // The event of this write brings the rest.
            return Ok(Requeue::OnEvent);
        }

        if observed.to_mark.is_some() {
            self.mark(key, observed, &plan.unready, now).await?;
        }

        let mut look_after = plan.look_after;
        let change = plan
            .taints
            .as_ref()
            .filter(|taints| taints.no_execute.is_some() && taints.waits);

        let change = change.map(|_| {
            self.shared
                .zones(|zones| zones.take(observed.node.zone(), now))
        });
        let may_drive = !matches!(change, Some(Err(_)));

        if let Some(Err(Some(wait))) = change {
            look_after = Some(look_after.map_or(wait, |after| after.min(wait)));
        }

        let taints = plan
            .taints
            .filter(|taints| taints.others_change || may_drive);
        if taints.is_some() || !plan.labels.is_empty() {
            let mut changes = versioned(&observed.node);
            for (label, value) in &plan.labels {
                changes
                    .object_mut("metadata")
                    .object_mut("labels")
                    .insert(*label, value.clone());
            }

            if let Some(taints) = &taints {
                changes
                    .object_mut("spec")
                    .insert("taints", list(taints, may_drive, now));
            }

            let patch = Patch::Merge(Value::Object(changes));
            self.node_access
                .patch(&key.name, &patch)
                .await
                .map_err(ActError::Node)?;
        }

        Ok(look_after.map_or(Requeue::OnEvent, Requeue::After))
    }

    /// Marks the pods of a node that is no longer ready, and records events.
    async fn mark(
        &self,
        key: &ObjectKey,
        observed: &Observed,
        pods: &[std::sync::Arc<Cached<Pod>>],
        now: Timestamp,
    ) -> Result<(), ActError> {
        for pod in pods {
            let access = self
                .pod_access
                .clone()
                .namespace(&pod.key.namespace)
                .subresource("status");

            match access
                .patch(&pod.key.name, &Patch::Strategic(not_ready(&pod.uid, now)))
                .await
            {
                Ok(_) => {
                    self.recorder
                        .warning(&Pod::reference(pod), "NodeNotReady", "Node is not ready")
                }
                Err(error) if error.is_not_found() || error.is_conflict() => {}
                Err(error) => return Err(ActError::Pod(pod.key.clone(), error)),
            }
        }

        self.shared.to_mark(|to_mark| to_mark.remove(&key.name));

        if !observed.node.is_ready() {
            let message = format!("Node {} status is now: NodeNotReady", key.name);
            self.recorder
                .normal(&Node::reference(&observed.node), "NodeNotReady", message);
        }

        Ok(())
    }
}

/// A patch that only applies to the observed version.
fn versioned(node: &Cached<Node>) -> Map {
    let mut patch = Map::new();
    patch
        .object_mut("metadata")
        .insert("resourceVersion", node.version.to_string());
    patch
}

fn unknown(conditions: &[Unknown], node: &Cached<Node>, now: Timestamp) -> Value {
    let condition = |unknown: &Unknown| {
        let mut condition = Map::new();
        condition.insert("type", unknown.kind);
        condition.insert("status", "Unknown");
        condition.insert("reason", unknown.reason);
        condition.insert("message", unknown.message);
        condition.insert("lastTransitionTime", Time(now).text());

        if let Some(since) = unknown.heartbeat {
            condition.insert("lastHeartbeatTime", Time(since).text());
        }

        Value::Object(condition)
    };

    let mut patch = versioned(node);
    patch.object_mut("status").insert(
        "conditions",
        conditions.iter().map(condition).collect::<Vec<_>>(),
    );

    Value::Object(patch)
}

fn list(taints: &Taints, may_drive: bool, now: Timestamp) -> Vec<Value> {
    let taint = |key: &str, effect: &str| {
        let mut taint = Map::new();
        taint.insert("key", key);
        taint.insert("effect", effect);
        taint.insert("timeAdded", Time(now).text());
        Value::Object(taint)
    };

    let mut list = taints.keep.clone();
    list.extend(
        taints
            .no_schedule
            .iter()
            .map(|key| taint(key, "NoSchedule")),
    );

    list.extend(
        taints
            .no_execute
            .filter(|_| may_drive)
            .map(|key| taint(key, "NoExecute")),
    );

    list
}

fn not_ready(uid: &str, now: Timestamp) -> Value {
    let mut condition = Map::new();
    condition.insert("type", "Ready");
    condition.insert("status", "False");
    condition.insert("lastTransitionTime", Time(now).text());
    let mut patch = Map::new();
    patch.object_mut("metadata").insert("uid", uid);
    patch
        .object_mut("status")
        .insert("conditions", vec![Value::Object(condition)]);
    Value::Object(patch)
}
