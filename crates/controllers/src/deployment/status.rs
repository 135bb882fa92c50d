//! The status of a Deployment. Pure.

use std::time::Duration;

use coracle_api::time::{Time, Timestamp};
use coracle_api::{Map, Value};

use super::revision::Set;
use super::sizes::size;
use crate::views::Deployment;

const AVAILABLE: &str = "Available";
const PROGRESSING: &str = "Progressing";
const REPLICA_FAILURE: &str = "ReplicaFailure";

const TIMED_OUT: &str = "ProgressDeadlineExceeded";
const COMPLETE: &str = "NewReplicaSetAvailable";
const PAUSED: &str = "DeploymentPaused";

/// A status being built.
pub struct Status<'a> {
    deployment: &'a Deployment,
    sets: &'a [Set],
    newest: Option<&'a Set>,
    now: Timestamp,
    fields: Map,
    conditions: Vec<Value>,
}

impl<'a> Status<'a> {
    /// Counts the pods of all ReplicaSets, and sets `Available`.
    pub fn counted(
        deployment: &'a Deployment,
        sets: &'a [Set],
        newest: Option<&'a Set>,
        now: Timestamp,
    ) -> Status<'a> {
        let sum = |name: &str| sets.iter().map(|set| set.counted(name)).sum::<i64>();
        let available = sum("availableReplicas");
        let wanted: i64 = sets.iter().map(|set| size(set)).sum();

        let before = deployment.status();
        let mut fields = Map::new();
        let numbers = [
            ("replicas", sum("replicas")),
            (
                "updatedReplicas",
                newest.map_or(0, |newest| newest.counted("replicas")),
            ),
            ("readyReplicas", sum("readyReplicas")),
            ("availableReplicas", available),
            ("unavailableReplicas", (wanted - available).max(0)),
        ];

        for (name, number) in numbers.into_iter().filter(|(_, number)| *number != 0) {
            fields.insert(name, number);
        }

        fields.insert("terminatingReplicas", sum("terminatingReplicas"));
        fields.insert("observedGeneration", deployment.object.meta().generation());

        if let Some(collisions) = before.and_then(|before| before.get("collisionCount")) {
            fields.insert("collisionCount", collisions.clone());
        }

        let conditions = before
            .map(|before| before.items("conditions").to_vec())
            .unwrap_or_default();
        let mut status = Status {
            deployment,
            sets,
            newest,
            now,
            fields,
            conditions,
        };
        status.pause();

        if available >= deployment.replicas() - deployment.unavailable() {
            let message = "Deployment has minimum availability.";
            status.set(AVAILABLE, "True", "MinimumReplicasAvailable", message);
        } else {
            let message = "Deployment does not have minimum availability.";
            status.set(AVAILABLE, "False", "MinimumReplicasUnavailable", message);
        }

        status
    }

    /// The newest ReplicaSet has been created.
    pub fn created(&mut self, name: &str) {
        if self.deployment.progress_deadline().is_some() {
            let message = format!("Created new replica set {name:?}");
            self.set(PROGRESSING, "True", "NewReplicaSetCreated", &message);
        }
    }

    /// The newest ReplicaSet could not be created.
    pub fn not_created(&mut self, message: &str) {
        if self.deployment.progress_deadline().is_some() {
            self.set(PROGRESSING, "False", "ReplicaSetCreateError", message);
        }
    }

    /// The hash of the newest ReplicaSet collides: the next attempt uses another one.
    pub fn collided(&mut self) {
        let collisions = self.fields.int("collisionCount");
        self.fields.insert("collisionCount", collisions + 1);
    }

    /// Sets `Progressing`.
    pub fn progress(&mut self) {
        if let Some(newest) = self.newest
            && self.deployment.progress_deadline().is_some()
            && self.condition(PROGRESSING).is_none()
        {
            let message = format!("Found new replica set {:?}", newest.key.name.as_str());
            self.set(PROGRESSING, "True", "FoundNewReplicaSet", &message);
        }

        match self.deployment.progress_deadline() {
            None => self
                .conditions
                .retain(|condition| kind(condition) != PROGRESSING),
            Some(deadline) => self.progress_within(deadline),
        }

        self.mirror_failure();
    }

    fn progress_within(&mut self, deadline: i64) {
        let was_complete = self
            .condition(PROGRESSING)
            .is_some_and(|current| text(current, "reason") == COMPLETE);
        if was_complete && self.fields.int("replicas") == self.fields.int("updatedReplicas") {
            return;
        }

        if self.is_complete() {
            let message = self.about("has successfully progressed.");
            self.set(PROGRESSING, "True", COMPLETE, &message);
        } else if self.has_progressed() {
            let message = self.about("is progressing.");
            let since = self
                .condition(PROGRESSING)
                .filter(|current| text(current, "status") == "True");
            let since = since
                .and_then(|current| current.get("lastTransitionTime"))
                .cloned();

            self.conditions
                .retain(|condition| kind(condition) != PROGRESSING);
            self.set(PROGRESSING, "True", "ReplicaSetUpdated", &message);

            if let (Some(since), Some(Value::Object(current))) = (since, self.conditions.last_mut())
            {
                current.insert("lastTransitionTime", since);
            }
        } else if self.has_timed_out(deadline) {
            let message = self.about("has timed out progressing.");
            self.set(PROGRESSING, "False", TIMED_OUT, &message);
        }
    }

    /// When to reconcile again without an event: when the progress deadline passes.
    pub fn wake_after(&self) -> Option<Duration> {
        let deadline = self.deployment.progress_deadline()?;
        let current = self.condition(PROGRESSING)?;
        if self.is_complete() || [TIMED_OUT, COMPLETE, PAUSED].contains(&text(current, "reason")) {
            return None;
        }

        let due = updated(current)?.plus_seconds(deadline + 1);
        Some(
            due.since(self.now)
                .to_std()
                .unwrap_or_default()
                .max(Duration::from_secs(1)),
        )
    }

    /// Whether the rollout is complete.
    pub fn is_complete(&self) -> bool {
        let wanted = self.deployment.replicas();
        ["updatedReplicas", "replicas", "availableReplicas"]
            .iter()
            .all(|name| self.fields.int(name) == wanted)
    }

    /// The status.
    pub fn done(self) -> Map {
        let mut fields = self.fields;
        if !self.conditions.is_empty() {
            fields.insert("conditions", self.conditions);
        }
        fields
    }

    fn has_progressed(&self) -> bool {
        let none = Map::new();
        let before = self.deployment.status().unwrap_or(&none);
        let more = |name: &str| self.fields.int(name) > before.int(name);
        let old = |status: &Map| status.int("replicas") - status.int("updatedReplicas");
        let fewer_old = old(&self.fields) < old(before);
        fewer_old || more("updatedReplicas") || more("readyReplicas") || more("availableReplicas")
    }

    fn has_timed_out(&self, deadline: i64) -> bool {
        let Some(current) = self.condition(PROGRESSING) else {
            return false;
        };
        match text(current, "reason") {
            COMPLETE => false,
            TIMED_OUT => true,
            _ => updated(current).is_some_and(|since| since.plus_seconds(deadline) < self.now),
        }
    }

    fn about(&self, what: &str) -> String {
        match self.newest {
            Some(newest) => format!("ReplicaSet {:?} {what}", newest.key.name.as_str()),
            None => format!(
                "Deployment {:?} {what}",
                self.deployment.object.meta().name()
            ),
        }
    }

    /// Pausing and resuming show in `Progressing`.
    fn pause(&mut self) {
        let current = self
            .condition(PROGRESSING)
            .map(|current| text(current, "reason").to_owned());
        if self.deployment.progress_deadline().is_none() || current.as_deref() == Some(TIMED_OUT) {
            return;
        }

        let was_paused = current.as_deref() == Some(PAUSED);
        match (self.deployment.is_paused(), was_paused) {
            (true, false) => self.set(PROGRESSING, "Unknown", PAUSED, "Deployment is paused"),
            (false, true) => self.set(
                PROGRESSING,
                "Unknown",
                "DeploymentResumed",
                "Deployment is resumed",
            ),
            _ => {}
        }
    }

    /// Copies `ReplicaFailure` from ReplicaSets, the newest first.
    fn mirror_failure(&mut self) {
        self.conditions
            .retain(|condition| kind(condition) != REPLICA_FAILURE);
        let all = self.newest.into_iter().chain(self.sets);
        let found = all.flat_map(|set| {
            let conditions = set
                .object
                .object
                .at(&["status", "conditions"])
                .and_then(Value::as_array);

            conditions
                .unwrap_or_default()
                .iter()
                .find(|condition| kind(condition) == REPLICA_FAILURE)
        });

        let Some(Value::Object(failure)) = found.take(1).next() else {
            return;
        };
        let mut failure = failure.clone();
        let since = failure
            .get("lastTransitionTime")
            .cloned()
            .unwrap_or_default();
        failure.insert("lastUpdateTime", since);

        self.conditions.push(Value::Object(failure));
    }

    fn condition(&self, wanted: &str) -> Option<&Value> {
        self.conditions
            .iter()
            .find(|condition| kind(condition) == wanted)
    }

    /// Sets a condition, unless it is the same already.
    fn set(&mut self, wanted: &str, state: &str, reason: &str, message: &str) {
        let current = self.condition(wanted);
        if current.is_some_and(|current| {
            text(current, "status") == state && text(current, "reason") == reason
        }) {
            return;
        }

        let now = Value::from(Time(self.now).text());
        let same_state = current.filter(|current| text(current, "status") == state);
        let since = same_state
            .and_then(|current| current.get("lastTransitionTime"))
            .cloned();
        let mut condition = Map::new();
        condition.insert("type", wanted);
        condition.insert("status", state);

        condition.insert("reason", reason);
        condition.insert("message", message);
        condition.insert("lastTransitionTime", since.unwrap_or_else(|| now.clone()));
        condition.insert("lastUpdateTime", now);
        self.conditions
            .retain(|condition| kind(condition) != wanted);
        self.conditions.push(Value::Object(condition));
    }
}

fn kind(condition: &Value) -> &str {
    text(condition, "type")
}

fn text<'v>(condition: &'v Value, name: &str) -> &'v str {
    condition
        .get(name)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn updated(condition: &Value) -> Option<Timestamp> {
    Time::parse(text(condition, "lastUpdateTime"))
        .ok()
        .map(|time| time.0)
}
