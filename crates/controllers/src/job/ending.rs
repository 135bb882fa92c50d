//! Whether and how a Job ends. Pure.

use coracle_api::time::Timestamp;
use coracle_api::{Map, Text, Value};

use super::failure::{Failure, apply_policy, has_failed};
use super::indexes::Indexes;
use super::plan::{Observed, Work, index_limit};
use crate::views::{Job, Phase};

/// The condition of a Job that will be complete as soon as its pods are terminated.
pub const SUCCESS: &str = "SuccessCriteriaMet";
/// The condition of a Job that will have failed.
pub const FAILURE: &str = "FailureTarget";

/// How a Job ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// Whether it succeeded.
    pub well: bool,
    /// The reason.
    pub reason: Text,
    /// The message.
    pub message: Text,
}

impl Ending {
    fn failed(reason: &'static str, message: impl Into<Text>) -> Option<Ending> {
        Some(Ending {
            well: false,
            reason: Text::const_new(reason),
            message: message.into(),
        })
    }

    /// All completions were reached.
    pub fn complete() -> Ending {
        Ending {
            well: true,
            reason: Text::const_new("CompletionsReached"),
            message: Text::const_new("Reached expected number of succeeded pods"),
        }
    }

    /// The condition to set first, and the one to set when all pods are terminated.
    pub fn conditions(&self) -> (&'static str, &'static str) {
        if self.well {
            (SUCCESS, "Complete")
        } else {
            (FAILURE, "Failed")
        }
    }
}

/// The ending that is certain already. A decided ending stays; failures come before successes.
pub(super) fn ending(
    observed: &Observed,
    work: &Work,
    failed: i64,
    now: Timestamp,
) -> Option<Ending> {
    let job: &Job = &observed.job;
    let decided = |kind: &str, well: bool| {
        let condition = job.condition(kind)?;
        let text = |name: &str| Text::new(condition.text(name));
        Some(Ending {
            well,
            reason: text("reason"),
            message: text("message"),
        })
    };

    decided(SUCCESS, true)
        .or_else(|| decided(FAILURE, false))
        .or_else(|| by_failure_policy(job, work))
        .or_else(|| by_limits(job, work, failed, now))
        .or_else(|| by_indexes(job, work))
        .or_else(|| by_success_policy(job, work))
}

fn by_failure_policy(job: &Job, work: &Work) -> Option<Ending> {
    job.failure_policy()?;
    let failed = work
        .claims
        .claimed
        .iter()
        .filter(|pod| has_failed(job, pod));

    let message = failed
        .map(|pod| apply_policy(job, pod))
        .find_map(|failure| match failure {
            Failure::Job(message) => Some(message),
            _ => None,
        })?;

    Ending::failed("PodFailurePolicy", message)
}

fn by_limits(job: &Job, work: &Work, failed: i64, now: Timestamp) -> Option<Ending> {
    if failed > job.backoff_limit() || restarts_exceed(job, work) {
        return Ending::failed(
            "BackoffLimitExceeded",
            "Job has reached the specified backoff limit",
        );
    }

    let (deadline, started) = (job.active_deadline()?, job.start_time()?);
    if !job.is_suspended() && started.plus_seconds(deadline) <= now {
        return Ending::failed(
            "DeadlineExceeded",
            "Job was active longer than specified deadline",
        );
    }

    None
}

/// With `restartPolicy: OnFailure`, container restarts count as failures.
fn restarts_exceed(job: &Job, work: &Work) -> bool {
    let policy = job
        .template()
        .and_then(|template| template.at(&["spec", "restartPolicy"]));
    if policy.and_then(Value::as_str) != Some("OnFailure") {
        return false;
    }

    let running = work
        .claims
        .claimed
        .iter()
        .filter(|pod| matches!(pod.phase, Phase::Running | Phase::Pending));

    let restarts: i64 = running.map(|pod| pod.all_restarts).sum();
    match job.backoff_limit() {
        0 => restarts > 0,
        limit => restarts >= limit,
    }
}

fn by_indexes(job: &Job, work: &Work) -> Option<Ending> {
    let failed = i64::try_from(work.failed_indexes.as_ref()?.len()).unwrap_or(i64::MAX);
    if job.max_failed_indexes().is_some_and(|limit| failed > limit) {
        let message = "Job has exceeded the specified maximal number of failed indexes";
        return Ending::failed("MaxFailedIndexesExceeded", message);
    }
    if failed > 0 && failed + work.succeeded >= job.completions().unwrap_or_default() {
        return Ending::failed("FailedIndexes", "Job has failed indexes");
    }
    None
}

fn by_success_policy(job: &Job, work: &Work) -> Option<Ending> {
    let succeeded = &work.succeeded_indexes;
    let rules = job
        .success_policy()
        .filter(|_| job.is_indexed() && !succeeded.is_empty())?
        .items("rules");

    let met = |rule: &Value| {
        let rule: &Map = rule.as_object()?;
        let count = rule.get("succeededCount").and_then(Value::as_int);
        let enough = |found: usize| {
            count.is_some_and(|count| i64::try_from(found).unwrap_or(i64::MAX) >= count)
        };

        let Some(needed) = rule.str("succeededIndexes") else {
            return Some(enough(succeeded.len()));
        };
        let needed = Indexes::parse(needed, index_limit(job));
        let shared = succeeded.shared(&needed);

        Some(!needed.is_empty() && (shared == needed.len() || enough(shared)))
    };

    let rule = rules
        .iter()
        .position(|rule| met(rule).unwrap_or_default())?;

    Some(Ending {
        well: true,
        reason: Text::const_new("SuccessPolicy"),
        message: format!("Matched rules at index {rule}").into(),
    })
}
