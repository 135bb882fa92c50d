//! What one CronJob needs now. Pure.
//!
//! Finished Jobs are removed from the active list, and the oldest are deleted. When a Job is due
//! and policy allows it, it is created with a name derived from the scheduled time, so that none is
//! created twice.

use std::sync::Arc;
use std::time::Duration;

use coracle_api::cron::{Schedule, is_known_zone};
use coracle_api::time::{Time, Timestamp};
use coracle_api::{Map, Text, Value};
use coracle_client::Cached;

use super::times::{due, wait};
use crate::views::{Concurrency, CronJob, Job};

/// All that was observed.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The CronJob.
    pub cron: Arc<Cached<CronJob>>,
    /// The Jobs that it controls.
    pub jobs: Vec<Arc<Cached<Job>>>,
}

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Finished Jobs beyond the history limits, to delete.
    pub forget: Vec<Arc<Cached<Job>>>,
    /// Jobs of the active list that are not in the cache.
    pub missing: Vec<Map>,
    /// Events to record.
    pub events: Vec<PlannedEvent>,
    /// The Job to create.
    pub create: Option<NewJob>,
    /// The status before the actions of this plan.
    pub status: Map,
    /// When to reconcile again without an event.
    pub wake_after: Option<Duration>,
}

/// An event to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedEvent {
    /// Whether its type is `Normal`.
    pub is_normal: bool,
    /// The reason.
    pub reason: &'static str,
    /// The message.
    pub message: String,
}

/// A Job to create.
#[derive(Clone, Debug, PartialEq)]
pub struct NewJob {
    /// Its scheduled time.
    pub at: Timestamp,
    /// Its name.
    pub name: String,
    /// The active Jobs that it replaces: name and UID.
    pub instead_of: Vec<(Text, Text)>,
}

fn warning(reason: &'static str, message: String) -> PlannedEvent {
    PlannedEvent {
        is_normal: false,
        reason,
        message,
    }
}

/// The active Jobs listed in a status.
pub(super) fn active(status: &Map) -> Vec<Map> {
    status
        .items("active")
        .iter()
        .filter_map(Value::as_object)
        .cloned()
        .collect()
}

/// Sets the active Jobs of a status.
pub(super) fn set_active(status: &mut Map, active: Vec<Map>) {
    match active.is_empty() {
        true => drop(status.remove("active")),
        false => drop(status.insert(
            "active",
            active.into_iter().map(Value::Object).collect::<Vec<_>>(),
        )),
    }
}

/// Decides what the CronJob needs.
pub fn plan(observed: &Observed, now: Timestamp) -> Plan {
    let cron: &CronJob = &observed.cron;
    let mut plan = Plan {
        forget: surplus(observed),
        missing: Vec::new(),
        events: Vec::new(),
        create: None,
        status: cron.status().cloned().unwrap_or_default(),
        wake_after: None,
    };
    check_jobs(observed, &mut plan);

    if !cron.is_being_deleted() {
        check_schedule(observed, &mut plan, now);
    }

    plan
}

/// The oldest finished Jobs beyond the limits.
fn surplus(observed: &Observed) -> Vec<Arc<Cached<Job>>> {
    let mut surplus = Vec::new();
    for kind in ["Complete", "Failed"] {
        let Some(limit) = observed.cron.history_limit(kind) else {
            continue;
        };
        let finished = |job: &&Arc<Cached<Job>>| job.finished().is_some_and(|(how, _)| how == kind);

        let mut jobs: Vec<_> = observed.jobs.iter().filter(finished).cloned().collect();
        jobs.sort_by(|one, other| {
            let order = |job: &Cached<Job>| {
                (
                    job.start_time().is_none(),
                    job.start_time(),
                    job.key.name.clone(),
                )
            };
            order(one).cmp(&order(other))
        });

        jobs.truncate(jobs.len().saturating_sub(limit));
        surplus.extend(jobs);
    }

    surplus
}

/// Removes finished Jobs from the active list, and reports unexpected ones.
fn check_jobs(observed: &Observed, plan: &mut Plan) {
    let mut listed = active(&plan.status);
    for job in &observed.jobs {
        let place = listed
            .iter()
            .position(|one| one.text("uid") == job.uid.as_str());

        let name = &job.key.name;
        match (job.finished(), place) {
            (None, None) => {
                let message =
                    format!("Saw a job that the controller did not create or forgot: {name}");
                plan.events.push(warning("UnexpectedJob", message));
            }
            (Some((how, _)), Some(place)) => {
                listed.remove(place);
                let message = format!("Saw completed job: {name}, condition: {how}");
                plan.events.push(PlannedEvent {
                    is_normal: true,
                    reason: "SawCompletedJob",
                    message,
                });
            }
            _ => {}
        }

        if job.condition("Complete").is_some() {
            note_success(&mut plan.status, job);
        }
    }

    let is_known = |one: &Map| {
        observed
            .jobs
            .iter()
            .any(|job| one.text("uid") == job.uid.as_str())
    };

    plan.missing = listed
        .iter()
        .filter(|one| !is_known(one))
        .cloned()
        .collect();

    if listed != active(&plan.status) {
        set_active(&mut plan.status, listed);
    }
}

fn note_success(status: &mut Map, job: &Job) {
    let completed = job
        .status()
        .map(|status| status.text("completionTime"))
        .unwrap_or_default();
    let moment = |text: &str| Time::parse(text).ok().map(|time| time.0);
    if moment(completed) > moment(status.text("lastSuccessfulTime")) {
        status.insert("lastSuccessfulTime", Text::new(completed));
    }
}

fn check_schedule(observed: &Observed, plan: &mut Plan, now: Timestamp) {
    let cron: &CronJob = &observed.cron;
    if let Some(zone) = cron.time_zone().filter(|zone| !is_known_zone(zone)) {
        let message = format!("invalid timeZone: {zone:?}: unknown time zone {zone}");
        plan.events.push(warning("UnknownTimeZone", message));
        return;
    }

    if cron.is_suspended() {
        return;
    }

    let text = cron.schedule();
    if text.contains("TZ") {
        let message = format!(
            "CRON_TZ or TZ used in schedule {text:?} is not officially supported, see \
             https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
        );
        plan.events.push(warning("UnsupportedSchedule", message));
    }

    let schedule = match Schedule::parse(text, cron.time_zone()) {
        Ok(schedule) => schedule,
        Err(why) => {
            let message = format!("unparseable schedule: {text:?} : {why}");
            plan.events.push(warning("UnparseableSchedule", message));
            return;
        }
    };

    let Some(times) = due(cron, &schedule, now) else {
        let why = "time difference between two schedules is less than 1 second";
        plan.events.push(warning(
            "InvalidSchedule",
            format!("invalid schedule: {text} : {why}"),
        ));
        return;
    };

    plan.wake_after = wait(cron, &schedule, now);
    let Some(at) = times.due else { return };

    if times.many {
        let message = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew";
        plan.events
            .push(warning("TooManyMissedTimes", message.to_string()));
    }

    if cron
        .starting_deadline()
        .is_some_and(|deadline| at.plus_seconds(deadline) < now)
    {
        let message = format!("Missed scheduled time to start a job: {}", rfc1123(at));
        plan.events.push(warning("MissSchedule", message));
        return;
    }

    plan_job(observed, plan, at);
}

/// Decides whether the Job of a scheduled time is created.
fn plan_job(observed: &Observed, plan: &mut Plan, at: Timestamp) {
    let cron: &CronJob = &observed.cron;
    let name = format!(
        "{}-{}",
        observed.cron.key.name,
        at.unix_seconds().div_euclid(60)
    );

    let listed = active(&plan.status);
    if listed.iter().any(|one| one.text("name") == name) || cron.last_schedule() == Some(at) {
        return;
    }

    let mut instead_of = Vec::new();
    match cron.concurrency() {
        Concurrency::Forbid if !listed.is_empty() => {
            let message = "Not starting job because prior execution is running and concurrency policy is Forbid";
            plan.events.push(PlannedEvent {
                is_normal: true,
                reason: "JobAlreadyActive",
                message: message.to_string(),
            });
            return;
        }
        Concurrency::Replace => {
            instead_of = listed
                .iter()
                .map(|one| (Text::new(one.text("name")), Text::new(one.text("uid"))))
                .collect();
        }
        Concurrency::Forbid | Concurrency::Allow => {}
    }

    plan.create = Some(NewJob {
        at,
        name,
        instead_of,
    });
}

/// `Thu, 01 Jan 2026 12:00:00 +0000`.
fn rfc1123(at: Timestamp) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];

    let text = Time(at).text();
    let day =
        usize::try_from(at.unix_seconds().div_euclid(86_400).rem_euclid(7)).unwrap_or_default();
    let month: usize = text[5..7].parse().unwrap_or(1);

    format!(
        "{}, {} {} {} {} +0000",
        DAYS[day],
        &text[8..10],
        MONTHS[month - 1],
        &text[..4],
        &text[11..19]
    )
}
