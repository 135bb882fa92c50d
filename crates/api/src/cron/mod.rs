//! Cron schedules, as CronJobs use them.
//!
//! A [`Schedule`] is five fields, or a descriptor such as `@daily`, in a time zone. `fields` parses
//! them, with the errors of the parser that upstream uses; [`Schedule::next`] computes the next
//! time. Times in the gap when clocks go forward are skipped, and times repeated when clocks go
//! back occur twice.

mod fields;
#[cfg(test)]
mod tests;
mod zone;

use fields::Fields;
use zone::Zone;
pub use zone::{in_zone, is_known_zone, offset_in_zone};

use crate::time::{Timestamp, parse_duration};

/// The search for the next time ends after this many years.
const HORIZON: i16 = 5;

/// A recurring time.
#[derive(Clone, Debug)]
pub struct Schedule {
    zone: Zone,
    when: When,
}

#[derive(Clone, Debug)]
enum When {
    At(Fields),
    /// This many seconds after the last time.
    Every(i64),
}

/// Why a schedule is invalid, in the parser's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ScheduleError(String);

impl Schedule {
    /// Parses a schedule. It is in the time zone `zone`, unless it names one itself; without
    /// either, in UTC.
    pub fn parse(schedule: &str, zone: Option<&str>) -> Result<Schedule, ScheduleError> {
        let mut rest = schedule;
        let mut named = zone;
        if schedule.starts_with("TZ=") || schedule.starts_with("CRON_TZ=") {
            let start = schedule.find('=').map_or(0, |at| at + 1);
            let Some(end) = schedule.find(' ') else {
                let why = "invalid schedule format: runtime error: slice bounds out of range [:-1]";
                return Err(ScheduleError(why.to_owned()));
            };
            named = Some(&schedule[start..end]);
            rest = schedule[end..].trim();
        }

        let named = named.unwrap_or("UTC");
        let unknown = || {
            ScheduleError(format!(
                "provided bad location {named}: unknown time zone {named}"
            ))
        };
        let zone = Zone::find(named).ok_or_else(unknown)?;

        let when = if rest.starts_with('@') {
            descriptor(rest)?
        } else {
            When::At(Fields::parse(rest)?)
        };

        Ok(Schedule { zone, when })
    }

    /// The next time after a moment; `None`: there is none within the search horizon.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        match &self.when {
            When::Every(seconds) => Some(after.truncated_to_seconds().plus_seconds(*seconds)),
            When::At(fields) => self.search(fields, after),
        }
    }

    /// Searches for the next minute that matches, skipping whole months, days and hours that do not
    /// match.
    fn search(&self, fields: &Fields, after: Timestamp) -> Option<Timestamp> {
        let mut at = after.truncated_to_seconds().plus_seconds(1);
        let last = self.zone.local(at)?.year().checked_add(HORIZON)?;
        loop {
            let local = self.zone.local(at)?;
            let past_minute = i64::from(local.second());
            if past_minute > 0 {
                at = at.plus_seconds(60 - past_minute);
                continue;
            }

            if local.year() > last {
                return None;
            }

            at = if !fields.has_month(local.month()) {
                self.zone
                    .midnight(local.date().last_of_month().tomorrow().ok()?)?
            } else if !fields.has_day(local.day(), local.weekday().to_sunday_zero_offset()) {
                self.zone.midnight(local.date().tomorrow().ok()?)?
            } else if !fields.has_hour(local.hour()) {
                at.plus_seconds(3600 - i64::from(local.minute()) * 60)
            } else if !fields.has_minute(local.minute()) {
                at.plus_seconds(60)
            } else {
                return Some(at);
            };
        }
    }
}

fn descriptor(text: &str) -> Result<When, ScheduleError> {
    if let Some(every) = text.strip_prefix("@every ") {
        let every = parse_duration(every)
            .map_err(|why| ScheduleError(format!("failed to parse duration {text}: {why}")))?;
        return Ok(When::Every(every.as_secs().max(1)));
    }

    let fields = match text {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        other => return Err(ScheduleError(format!("unrecognized descriptor: {other}"))),
    };

    Fields::parse(fields).map(When::At)
}
