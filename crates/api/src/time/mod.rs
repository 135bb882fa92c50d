//! Times and durations of objects.
//!
//! A [`Timestamp`] is a time to the nanosecond; the current time is passed in as one. [`Time`] and
//! [`MicroTime`] are the two encodings of a time in an object: RFC 3339 in UTC, to the second or to
//! the microsecond. A [`Duration`] is formatted as Go does (`1h2m3.5s`), and as `kubectl` prints
//! ages. `rfc3339` parses, `civil` is the calendar.

mod civil;
mod duration;
mod rfc3339;
#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::{Add, Sub};
use std::time::SystemTime;

use compact_str::format_compact;

use crate::Text;
pub use duration::{Duration, DurationError, parse_duration};
pub use rfc3339::TimeError;
use rfc3339::{Fraction, MICRO_LAYOUT, SECOND_LAYOUT};

/// A time: seconds since 1970 in UTC, and nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    seconds: i64,
    nanos: u32,
}

impl Timestamp {
    /// The start of the year 1, upstream's zero time: it is encoded as null.
    pub const ZERO: Timestamp = Timestamp {
        seconds: -62_135_596_800,
        nanos: 0,
    };

    /// A time from seconds and nanoseconds; excess nanoseconds carry over.
    pub const fn from_unix(seconds: i64, nanos: u32) -> Timestamp {
        let carried = seconds.saturating_add((nanos / NANOS_PER_SECOND) as i64);
        Timestamp {
            seconds: carried,
            nanos: nanos % NANOS_PER_SECOND,
        }
    }

    pub const fn unix_seconds(self) -> i64 {
        self.seconds
    }

    pub const fn subsec_nanos(self) -> u32 {
        self.nanos
    }

    pub fn is_zero(self) -> bool {
        self == Timestamp::ZERO
    }

    /// The duration since `earlier`; negative, if that is later. Saturates at 292 years.
    pub fn since(self, earlier: Timestamp) -> Duration {
        let nanos = (i128::from(self.seconds) - i128::from(earlier.seconds))
            * i128::from(NANOS_PER_SECOND)
            + i128::from(self.nanos)
            - i128::from(earlier.nanos);
        let limit = if nanos < 0 { i64::MIN } else { i64::MAX };
        Duration::from_nanos(i64::try_from(nanos).unwrap_or(limit))
    }

    /// This many seconds later, or earlier.
    #[must_use]
    pub const fn plus_seconds(self, seconds: i64) -> Timestamp {
        Timestamp {
            seconds: self.seconds.saturating_add(seconds),
            nanos: self.nanos,
        }
    }

    /// The time truncated to seconds, as [`Time`] stores it.
    pub fn truncated_to_seconds(self) -> Timestamp {
        Timestamp { nanos: 0, ..self }
    }
}

impl Add<Duration> for Timestamp {
    type Output = Timestamp;

    fn add(self, span: Duration) -> Timestamp {
        let per_second = i64::from(NANOS_PER_SECOND);
        let nanos = i64::from(self.nanos) + span.as_nanos().rem_euclid(per_second);
        let seconds = self
            .seconds
            .saturating_add(span.as_nanos().div_euclid(per_second));
        Timestamp::from_unix(
            seconds,
            u32::try_from(nanos).expect("less than two seconds of nanoseconds"),
        )
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Timestamp;

    fn sub(self, span: Duration) -> Timestamp {
        self.add(span.negated())
    }
}

impl Sub for Timestamp {
    type Output = Duration;

    fn sub(self, earlier: Timestamp) -> Duration {
        self.since(earlier)
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Timestamp {
        match time.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(after) => Timestamp::from_unix(0, 0) + Duration::from(after),
            Err(before) => Timestamp::from_unix(0, 0) - Duration::from(before.duration()),
        }
    }
}

/// The time format of most fields: `2026-03-01T12:00:00Z`. Parses fractions and offsets, prints
/// neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub Timestamp);

impl Time {
    pub fn parse(text: &str) -> Result<Time, TimeError> {
        rfc3339::parse(text, SECOND_LAYOUT, Fraction::Optional).map(Time)
    }

    /// The printed form.
    pub fn text(self) -> Text {
        let mut text = civil::date_and_time(self.0.seconds);
        text.push('Z');
        text
    }
}

impl fmt::Display for Time {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text())
    }
}

/// The time format of leases and events: `2026-03-01T12:00:00.000001Z`. Parses offsets, but only
/// six decimals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MicroTime(pub Timestamp);

impl MicroTime {
    pub fn parse(text: &str) -> Result<MicroTime, TimeError> {
        rfc3339::parse(text, MICRO_LAYOUT, Fraction::Micros).map(MicroTime)
    }

    /// The printed form.
    pub fn text(self) -> Text {
        format_compact!(
            "{}.{:06}Z",
            civil::date_and_time(self.0.seconds),
            self.0.nanos / 1000
        )
    }
}

impl fmt::Display for MicroTime {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text())
    }
}

const NANOS_PER_SECOND: u32 = 1_000_000_000;

/// A text as Go's time package quotes it in its errors: every byte outside printable ASCII in
/// hexadecimal.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("\"")?;

        for character in self.0.chars() {
            match character {
                '"' | '\\' => write!(out, "\\{character}")?,
                ' '..='\x7f' => write!(out, "{character}")?,
                _ => {
                    for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                        write!(out, "\\x{byte:02x}")?;
                    }
                }
            }
        }

        out.write_str("\"")
    }
}
