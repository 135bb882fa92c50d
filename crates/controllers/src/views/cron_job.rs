//! The view of a CronJob: the whole object, with accessors for the fields that controllers read.

use coracle_api::time::{Time, Timestamp};
use coracle_api::typed::TypedError;
use coracle_api::{Map, Value};
use coracle_client::Projection;
use std::sync::Arc;

/// A CronJob.
#[derive(Clone, Debug, PartialEq)]
pub struct CronJob {
    /// The object, without `managedFields`.
    pub object: Arc<Value>,
}

/// What happens when a Job is due while the last one still runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concurrency {
    /// Another one starts.
    Allow,
    /// None starts.
    Forbid,
    /// The new one replaces the running one.
    Replace,
}

impl CronJob {
    fn spec(&self, name: &str) -> Option<&Value> {
        self.object
            .at(&["spec", name])
            .filter(|value| !value.is_null())
    }

    /// The cron schedule.
    pub fn schedule(&self) -> &str {
        self.spec("schedule")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// The time zone of the schedule.
    pub fn time_zone(&self) -> Option<&str> {
        self.spec("timeZone").and_then(Value::as_str)
    }

    /// What happens when a Job is due while the last one still runs.
    pub fn concurrency(&self) -> Concurrency {
        match self.spec("concurrencyPolicy").and_then(Value::as_str) {
            Some("Forbid") => Concurrency::Forbid,
            Some("Replace") => Concurrency::Replace,
            _ => Concurrency::Allow,
        }
    }

    /// How late a Job may start, in seconds.
    pub fn starting_deadline(&self) -> Option<i64> {
        self.spec("startingDeadlineSeconds").and_then(Value::as_int)
    }

    /// Whether no Jobs start for now.
    pub fn is_suspended(&self) -> bool {
        self.spec("suspend")
            .and_then(Value::as_bool)
            .unwrap_or_default()
    }

    /// How many complete or failed Jobs are kept.
    pub fn history_limit(&self, kind: &str) -> Option<usize> {
        let name = if kind == "Complete" {
            "successfulJobsHistoryLimit"
        } else {
            "failedJobsHistoryLimit"
        };
        self.spec(name)
            .and_then(Value::as_int)
            .map(|limit| usize::try_from(limit).unwrap_or_default())
    }

    /// The Job template.
    pub fn job_template(&self) -> Option<&Value> {
        self.spec("jobTemplate")
    }

    /// The status.
    pub fn status(&self) -> Option<&Map> {
        self.object.get("status").and_then(Value::as_object)
    }

    /// The time for which the last Job was scheduled.
    pub fn last_schedule(&self) -> Option<Timestamp> {
        Time::parse(self.status()?.text("lastScheduleTime"))
            .ok()
            .map(|time| time.0)
    }

    /// Whether it is being deleted.
    pub fn is_being_deleted(&self) -> bool {
        self.object.meta().is_being_deleted()
    }
}

impl Projection for CronJob {
    fn project(object: &Arc<Value>) -> Result<CronJob, TypedError> {
        Ok(CronJob {
            object: object.clone(),
        })
    }
}
