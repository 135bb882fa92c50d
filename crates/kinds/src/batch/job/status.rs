//! The status of a job: it finishes once, for one reason, and its counters never decrease.
//!
//! A rule is only checked where its fields changed, so that a job that violates it already stays
//! writable.

use std::collections::BTreeSet;

use coracle_api::field_error::{FieldError, shown};
use coracle_api::{Path, Value};
use k8s_openapi::api::batch::v1::{Job, JobSpec, JobStatus};

use super::{indexes, spec};
use crate::strategy::{Errors, View};
use crate::validate::{internal, items, text, validate_not_negative};

const STATUS: Path<'static> = Path::Field(&Path::Root, "status");

/// Whether a condition is true.
pub(super) fn holds(job: &Value, condition: &str) -> bool {
    let conditions = job
        .at(&["status", "conditions"])
        .and_then(Value::as_array)
        .unwrap_or_default();
    let part = |of: &Value, name: &str| of.get(name).and_then(Value::as_str).map(str::to_owned);
    conditions.iter().any(|found| {
        part(found, "type").as_deref() == Some(condition)
            && part(found, "status").as_deref() == Some("True")
    })
}

/// The conditions of a job.
struct Conditions {
    complete: bool,
    failed: bool,
    failing: bool,
    enough: bool,
}

impl Conditions {
    fn of(job: &Value) -> Conditions {
        Conditions {
            complete: holds(job, "Complete"),
            failed: holds(job, "Failed"),
            failing: holds(job, "FailureTarget"),
            enough: holds(job, "SuccessCriteriaMet"),
        }
    }

    fn finished(&self) -> bool {
        self.complete || self.failed
    }
}

/// One change of a status.
struct Change<'a> {
    new: &'a View<'a, Job>,
    old: &'a View<'a, Job>,
    status: JobStatus,
    before: JobStatus,
    spec: JobSpec,
    now: Conditions,
    then: Conditions,
}

pub(super) fn validate_change(new: &View<'_, Job>, old: &View<'_, Job>, errors: &mut Errors) {
    let change = Change {
        new,
        old,
        status: new.status.clone().unwrap_or_default(),
        before: old.status.clone().unwrap_or_default(),
        spec: new.spec.clone().unwrap_or_default(),
        now: Conditions::of(new.tree),
        then: Conditions::of(old.tree),
    };

    change.validate_counts(errors);
    change.validate_conditions(errors);
    change.validate_times(errors);
    change.validate_finished(errors);
    change.validate_indexes(errors);
    change.validate_success_criteria(errors);
    change.validate_no_regression(errors);
}

impl Change<'_> {
    fn differs(&self, field: &str) -> bool {
        self.new.tree.at(&["status", field]) != self.old.tree.at(&["status", field])
    }

    /// How errors show a field of the status.
    fn shown(&self, field: &str) -> String {
        self.new
            .tree
            .at(&["status", field])
            .map_or_else(|| "null".to_owned(), shown)
    }

    fn refuse(&self, field: &str, why: &str, errors: &mut Errors) {
        errors.push(FieldError::invalid(
            &STATUS.field(field),
            self.shown(field),
            why,
        ));
    }

    fn validate_counts(&self, errors: &mut Errors) {
        let status = &self.status;
        let counts = [
            ("active", status.active),
            ("succeeded", status.succeeded),
            ("failed", status.failed),
            ("ready", status.ready),
            ("terminating", status.terminating),
        ];

        for (name, count) in counts {
            validate_not_negative(
                count.unwrap_or_default().into(),
                &STATUS.field(name),
                errors,
            );
        }

        let Some(uncounted) = &status.uncounted_terminated_pods else {
            return;
        };
        let at = STATUS.field("uncountedTerminatedPods");

        let mut seen = BTreeSet::new();
        for (name, list) in [
            ("succeeded", &uncounted.succeeded),
            ("failed", &uncounted.failed),
        ] {
            for (index, uid) in items(list).iter().enumerate() {
                let place = at.field(name);
                let place = place.index(index);
                if uid.is_empty() {
                    errors.push(FieldError::invalid_str(&place, uid, "must not be empty"));
                } else if !seen.insert(uid) {
                    errors.push(FieldError::duplicate(&place, internal::text(uid)));
                }
            }
        }
    }

    fn validate_conditions(&self, errors: &mut Errors) {
        let (now, then) = (&self.now, &self.then);
        let completed = now.complete != then.complete;
        if (completed || now.failed != then.failed) && now.complete && now.failed {
            refuse_condition(
                "cannot set Complete=True and Failed=true conditions",
                errors,
            );
        }

        if (completed || now.failing != then.failing) && now.complete && now.failing {
            refuse_condition(
                "cannot set Complete=True and FailureTarget=true conditions",
                errors,
            );
        }
    }

    fn validate_times(&self, errors: &mut Errors) {
        let (status, now) = (&self.status, &self.now);
        let (started, ended) = (self.differs("startTime"), self.differs("completionTime"));
        if now.complete != self.then.complete || ended {
            if status.completion_time.is_some() && !now.complete {
                let why = "cannot set completionTime when there is no Complete=True condition";
                self.refuse("completionTime", why, errors);
            }
            if status.completion_time.is_none() && now.complete {
                let why = "completionTime is required for Complete jobs";
                errors.push(FieldError::required(&STATUS.field("completionTime"), why));
            }
        }

        if (started || ended)
            && let (Some(start), Some(end)) = (&status.start_time, &status.completion_time)
            && end.0 < start.0
        {
            self.refuse(
                "completionTime",
                "must be equal to or after `startTime`",
                errors,
            );
        }
    }

    fn validate_finished(&self, errors: &mut Errors) {
        let (status, now, then) = (&self.status, &self.now, &self.then);
        if (now.failed != then.failed || self.differs("failedIndexes"))
            && now.failed
            && !now.failing
        {
            refuse_condition(
                "cannot set Failed=True condition without the FailureTarget=true condition",
                errors,
            );
        }

        if (now.complete != then.complete || now.enough != then.enough)
            && now.complete
            && !now.enough
        {
            refuse_condition(
                "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
                errors,
            );
        }

        let ended = now.finished() != then.finished();
        if (ended || self.differs("active"))
            && status.active.unwrap_or_default() > 0
            && now.finished()
        {
            self.refuse("active", "active>0 is invalid for finished job", errors);
        }

        let nothing_to_do = self.spec.suspend == Some(true) && self.spec.completions == Some(0);
        if (ended || self.differs("startTime"))
            && !nothing_to_do
            && status.start_time.is_none()
            && now.finished()
        {
            let why = "startTime is required for finished job";
            errors.push(FieldError::required(&STATUS.field("startTime"), why));
        }

        if let Some(uncounted) = status
            .uncounted_terminated_pods
            .as_ref()
            .filter(|uncounted| {
                (ended || self.differs("uncountedTerminatedPods"))
                    && now.finished()
                    && items(&uncounted.failed).len() + items(&uncounted.succeeded).len() > 0
            })
        {
            let shown = internal::object(&[
                ("Succeeded", internal::texts(uncounted.succeeded.as_deref())),
                ("Failed", internal::texts(uncounted.failed.as_deref())),
            ]);

            let at = STATUS.field("uncountedTerminatedPods");
            errors.push(FieldError::invalid(
                &at,
                shown,
                "must be empty for finished job",
            ));
        }
    }

    fn validate_indexes(&self, errors: &mut Errors) {
        let (status, spec) = (&self.status, &self.spec);
        let completed = text(&status.completed_indexes);
        let (completed_differ, failed_differ) = (
            self.differs("completedIndexes"),
            self.differs("failedIndexes"),
        );

        let mut read = |name: &str, list: &str| {
            if let Some(Err(why)) = spec
                .completions
                .map(|completions| indexes::count(list, completions))
            {
                let why = format!("error parsing {name}: {why}");
                errors.push(FieldError::invalid_str(&STATUS.field(name), list, why));
            }
        };

        if completed_differ {
            read("completedIndexes", completed);
        }

        if let Some(failed) = status.failed_indexes.as_deref().filter(|_| failed_differ)
            && spec.backoff_limit_per_index.is_some()
        {
            read("failedIndexes", failed);
        }

        if completed_differ && !completed.is_empty() && !spec::is_indexed(spec) {
            let why = "cannot set non-empty completedIndexes when non-indexed completion mode";
            self.refuse("completedIndexes", why, errors);
        }

        if failed_differ
            && spec.backoff_limit_per_index.is_none()
            && status.failed_indexes.is_some()
        {
            let why = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
            self.refuse("failedIndexes", why, errors);
        }

        if (failed_differ || completed_differ)
            && let (Some(failed), Some(completions)) = (&status.failed_indexes, spec.completions)
            && let Some(index) = indexes::overlap(completed, failed, completions)
        {
            let why = format!("failedIndexes and completedIndexes overlap at index: {index}");
            self.refuse("failedIndexes", &why, errors);
        }

        let ended = self.now.finished() != self.then.finished();
        let going = status.terminating.unwrap_or_default() > 0;
        if (ended || self.differs("terminating")) && going && self.now.finished() {
            self.refuse(
                "terminating",
                "terminating>0 is invalid for finished job",
                errors,
            );
        }

        let ready = status
            .ready
            .filter(|ready| *ready > status.active.unwrap_or_default());
        if (self.differs("ready") || self.differs("active")) && ready.is_some() {
            self.refuse("ready", "cannot set more ready pods than active", errors);
        }
    }

    fn validate_success_criteria(&self, errors: &mut Errors) {
        let now = &self.now;
        if now.enough && now.failed {
            refuse_condition(
                "cannot set SuccessCriteriaMet=True and Failed=true conditions",
                errors,
            );
        }

        if now.enough && now.failing {
            refuse_condition(
                "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions",
                errors,
            );
        }

        if self.spec.success_policy.is_some() && !now.enough && now.complete {
            refuse_condition(
                "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True",
                errors,
            );
        }
    }

    fn validate_no_regression(&self, errors: &mut Errors) {
        let (status, before, now, then) = (&self.status, &self.before, &self.now, &self.then);
        let ends = [
            ("Failed", then.failed, now.failed),
            ("Complete", then.complete, now.complete),
            ("FailureTarget", then.failing, now.failing),
        ];

        for (name, _, _) in ends.into_iter().filter(|(_, then, now)| *then && !now) {
            refuse_condition(
                &format!("cannot disable the terminal {name}=True condition"),
                errors,
            );
        }

        if status.failed.unwrap_or_default() < before.failed.unwrap_or_default() {
            self.refuse_lower("failed", status.failed, errors);
        }

        // A job that is scaled down may have fewer succeeded pods than before.
        let scales = spec::is_indexed(&self.spec) && self.spec.completions == self.spec.parallelism;
        if !scales && status.succeeded.unwrap_or_default() < before.succeeded.unwrap_or_default() {
            self.refuse_lower("succeeded", status.succeeded, errors);
        }

        if before.completion_time.is_some()
            && status.completion_time.is_some()
            && self.differs("completionTime")
        {
            self.refuse("completionTime", "field is immutable", errors);
        }

        let resumes = holds(self.old.tree, "Suspended") && !holds(self.new.tree, "Suspended");
        let runs = self.spec.suspend != Some(true);
        if self.differs("startTime") && !resumes && before.start_time.is_some() && runs {
            self.refuse(
                "startTime",
                "field is immutable for unsuspended job once set",
                errors,
            );
        }

        if then.enough && !now.enough {
            refuse_condition(
                "cannot disable the SuccessCriteriaMet=True condition",
                errors,
            );
        }

        if then.complete && !then.enough && now.enough {
            refuse_condition(
                "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions",
                errors,
            );
        }
    }

    fn refuse_lower(&self, name: &str, count: Option<i32>, errors: &mut Errors) {
        let why = format!("cannot decrease the {name} counter");
        errors.push(FieldError::invalid(
            &STATUS.field(name),
            count.unwrap_or_default().to_string(),
            why,
        ));
    }
}

/// Adds an error about conditions, whose value is not shown.
fn refuse_condition(why: &str, errors: &mut Errors) {
    let at = STATUS.field("conditions");
    errors.push(FieldError {
        bad_value: None,
        ..FieldError::invalid(&at, String::new(), why)
    });
}
