//! When a CronJob's next Job begins, and which one it has missed. Pure.

use std::time::Duration;

use coracle_api::cron::Schedule;
use coracle_api::time::Timestamp;

use crate::views::CronJob;

/// It is looked a little later than it is time, so that it is time.
const LATER: Duration = Duration::from_millis(100);
/// More missed times than this are told people.
const MANY: i64 = 100;

/// What a schedule says about now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Times {
    /// The newest time that has come and for which no Job has been made.
    pub(super) due: Option<Timestamp>,
    /// Whether so many were missed that something is wrong.
    pub(super) many: bool,
}

/// The times since the last Job, those that are too late to begin left out.
pub(super) fn due(cron: &CronJob, schedule: &Schedule, now: Timestamp) -> Option<Times> {
    let mut earliest = since(cron, now);
    if let Some(deadline) = cron.starting_deadline() {
        earliest = earliest.max(now.plus_seconds(-deadline));
    }
    newest(schedule, earliest, now)
}

/// From when on Jobs are owed.
fn since(cron: &CronJob, now: Timestamp) -> Timestamp {
    cron.last_schedule()
        .or_else(|| cron.object.meta().creation_timestamp())
        .unwrap_or(now)
}

/// The newest time after `earliest` that has come by now.
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

    // Not all of them are counted: a schedule may come every minute, and the last time may be years
    // ago.
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

/// How long until it is to be looked again.
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
