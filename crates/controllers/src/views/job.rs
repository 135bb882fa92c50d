//! The view of a Job: the whole object, with accessors for the fields that controllers read.

use coracle_api::selector::LabelSelector;
use coracle_api::time::{Time, Timestamp};
use coracle_api::typed::TypedError;
use coracle_api::{Map, Text, Value};
use coracle_client::ownership::Controller;
use coracle_client::{Cached, Projection};
use std::sync::Arc;

use super::orphans_of;
use crate::pods::PodOwner;

/// The Jobs of this controller have no `managedBy`, or this one.
const MANAGED_BY: &str = "kubernetes.io/job-controller";

/// A Job.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// The object, without `managedFields`.
    pub object: Arc<Value>,
    /// Selects its pods; `None` if missing or invalid.
    pub selector: Option<LabelSelector>,
    /// Its controller: a CronJob, if any.
    pub controller: Option<Controller>,
}

impl Job {
    fn spec(&self, name: &str) -> Option<&Value> {
        self.object
            .at(&["spec", name])
            .filter(|value| !value.is_null())
    }

    fn number(&self, name: &str) -> Option<i64> {
        self.spec(name).and_then(Value::as_int)
    }

    /// How many pods must succeed; `None`: one success completes the Job.
    pub fn completions(&self) -> Option<i64> {
        self.number("completions")
    }

    /// How many pods run at once.
    pub fn parallelism(&self) -> i64 {
        self.number("parallelism").unwrap_or(1)
    }

    /// How many pods may fail.
    pub fn backoff_limit(&self) -> i64 {
        self.number("backoffLimit").unwrap_or(6)
    }

    /// How many pods of one index may fail.
    pub fn backoff_limit_per_index(&self) -> Option<i64> {
        self.number("backoffLimitPerIndex")
            .filter(|_| self.is_indexed())
    }

    /// How many indexes may fail.
    pub fn max_failed_indexes(&self) -> Option<i64> {
        self.number("maxFailedIndexes")
    }

    /// How long it may be active, in seconds.
    pub fn active_deadline(&self) -> Option<i64> {
        self.number("activeDeadlineSeconds")
    }

    /// How long it stays after it has finished, in seconds.
    pub fn seconds_to_live(&self) -> Option<i64> {
        self.number("ttlSecondsAfterFinished")
    }

    /// `Indexed`, `NonIndexed`, or an unknown mode.
    pub fn completion_mode(&self) -> &str {
        self.spec("completionMode")
            .and_then(Value::as_str)
            .unwrap_or("NonIndexed")
    }

    /// Whether each pod has an index.
    pub fn is_indexed(&self) -> bool {
        self.completion_mode() == "Indexed"
    }

    /// Whether no pods may run for now.
    pub fn is_suspended(&self) -> bool {
        self.spec("suspend")
            .and_then(Value::as_bool)
            .unwrap_or_default()
    }

    /// Whether a pod is replaced only when it has failed, and not already when it is being deleted.
    pub fn only_replaces_failed(&self) -> bool {
        let policy = self.spec("podReplacementPolicy").and_then(Value::as_str);
        policy == Some("Failed") || self.failure_policy().is_some()
    }

    /// The pod failure policy.
    pub fn failure_policy(&self) -> Option<&Map> {
        self.spec("podFailurePolicy").and_then(Value::as_object)
    }

    /// The success policy.
    pub fn success_policy(&self) -> Option<&Map> {
        self.spec("successPolicy").and_then(Value::as_object)
    }

    /// The pod template.
    pub fn template(&self) -> Option<&Value> {
        self.spec("template")
    }

    /// Whether another controller manages it.
    pub fn is_foreign(&self) -> bool {
        self.spec("managedBy")
            .and_then(Value::as_str)
            .is_some_and(|name| name != MANAGED_BY)
    }

    /// Whether it is being deleted.
    pub fn is_being_deleted(&self) -> bool {
        self.object.meta().is_being_deleted()
    }

    /// The status.
    pub fn status(&self) -> Option<&Map> {
        self.object.get("status").and_then(Value::as_object)
    }

    /// A condition that is true.
    pub fn condition(&self, kind: &str) -> Option<&Map> {
        let mut conditions = self
            .status()?
            .items("conditions")
            .iter()
            .filter_map(Value::as_object);
        conditions
            .find(|condition| condition.text("type") == kind && condition.text("status") == "True")
    }

    /// `Complete` or `Failed` if it has finished, and since when.
    pub fn finished(&self) -> Option<(&'static str, Option<Timestamp>)> {
        ["Complete", "Failed"].into_iter().find_map(|kind| {
            let condition = self.condition(kind)?;
            Some((
                kind,
                Time::parse(condition.text("lastTransitionTime"))
                    .ok()
                    .map(|time| time.0),
            ))
        })
    }

    /// When it started.
    pub fn start_time(&self) -> Option<Timestamp> {
        Time::parse(self.status()?.text("startTime"))
            .ok()
            .map(|time| time.0)
    }

    /// Its key in the index [`BY_CONTROLLER`](super::BY_CONTROLLER).
    pub fn by_controller(job: &Cached<Job>) -> Vec<Text> {
        let owner = job.controller.as_ref();
        vec![owner.map_or_else(
            || Text::from(orphans_of(&job.key.namespace)),
            |owner| owner.uid.clone(),
        )]
    }
}

impl PodOwner for Job {
    const API_VERSION: &'static str = "batch/v1";
    const KIND: &'static str = "Job";

    fn object(&self) -> &Value {
        &self.object
    }

    fn selects(&self, labels: &Map) -> bool {
        self.selector
            .as_ref()
            .is_some_and(|selector| selector.matches(labels))
    }
}

impl Projection for Job {
    fn project(object: &Arc<Value>) -> Result<Job, TypedError> {
        let selector = LabelSelector::from_value(object.at(&["spec", "selector"]));
        let selector = selector
            .ok()
            .filter(|selector| *selector != LabelSelector::Nothing);
        let controller = Controller::of(object.meta());
        Ok(Job {
            selector,
            controller,
            object: object.clone(),
        })
    }
}
