//! When a CronJob's next Job is due, and which one was missed. Pure.

use std::time::Duration;

use coracle_api::cron::Schedule;
use coracle_api::time::Timestamp;

use crate::views::CronJob;

/// Reconcile a little later than the scheduled time, so that it has certainly passed.
const LATER: Duration = Duration::from_millis(100);
/// From this number of missed times on, an event is recorded.
const MANY: i64 = 100;

/// The scheduled times up to now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Times {
    /// The newest scheduled time that has passed without a Job.
    pub(super) due: Option<Timestamp>,
    /// Whether so many were missed that an event is recorded.
    pub(super) many: bool,
}

/// The scheduled times since the last Job, without those past the starting deadline.
pub(super) fn due(cron: &CronJob, schedule: &Schedule, now: Timestamp) -> Option<Times> {
    let mut earliest = since(cron, now);
    if let Some(deadline) = cron.starting_deadline() {
        earliest = earliest.max(now.plus_seconds(-deadline));
    }
    newest(schedule, earliest, now)
}

/// The time from which on Jobs are due.
fn since(cron: &CronJob, now: Timestamp) -> Timestamp {
    cron.last_schedule()
        .or_else(|| cron.object.meta().creation_timestamp())
        .unwrap_or(now)
}

/// The newest scheduled time after `earliest` that has passed.
fn newest(schedule: &Schedule, earliest: Timestamp, now: Timestamp) -> Option<Times> {
    let none = Times {
        due: None,
        many: false,
    };

    let Some(first) = schedule.next(earliest).filter(|first| *first <= now) else {
        return Some(none);
    };
    let Some(second) = schedule.next(first).filter(|second| *second <= now) else {
        return Some(Times {
            due: Some(first),
            many: false,
        });
    };

    let between = second.since(first).as_secs();
    if between < 1 {
        return None;
    }

    let missed = now.since(first).as_secs() / between + 1;

    // They are not all enumerated: a schedule may fire every minute, and the last Job may be years
    // old.
    let mut next = schedule.next(first.plus_seconds((missed - 2) * between));
    let mut found = None;
    while let Some(at) = next.filter(|at| *at <= now) {
        found = Some(at);
        next = schedule.next(at);
    }

    Some(Times {
        due: found,
        many: missed > MANY,
    })
}

/// How long until the next reconcile.
pub(super) fn wait(cron: &CronJob, schedule: &Schedule, now: Timestamp) -> Option<Duration> {
    let earliest = since(cron, now);
    let after = match newest(schedule, earliest, now) {
        Some(Times { due: Some(due), .. }) => due,
        Some(Times {
            due: None,
            many: false,
        }) => earliest,
        _ => now,
    };
    let next = schedule.next(after)?;
    Some(next.since(now).to_std().unwrap_or_default() + LATER)
}
