//! Durations: `1h2m3.5s` in Go's format, `3h20m` in kubectl's.

use std::fmt;
use std::str::FromStr;

use super::Quoted;

/// A span of time in nanoseconds, negative or not; at most 292 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(i64);

/// Why a text is no duration, in Go's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    #[error("time: invalid duration {}", Quoted(.0))]
    Invalid(String),
    #[error("time: missing unit in duration {}", Quoted(.0))]
    MissingUnit(String),
    #[error("time: unknown unit {} in duration {}", Quoted(unit), Quoted(text))]
    UnknownUnit { unit: String, text: String },
}

const MICROSECOND: u64 = 1_000;
const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

impl Duration {
    pub const ZERO: Duration = Duration(0);

    pub const fn from_nanos(nanos: i64) -> Duration {
        Duration(nanos)
    }

    /// Whole seconds, saturating at 292 years.
    pub const fn from_secs(seconds: i64) -> Duration {
        Duration(seconds.saturating_mul(1_000_000_000))
    }

    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// Whole seconds, towards zero.
    pub const fn as_secs(self) -> i64 {
        self.0 / 1_000_000_000
    }

    pub const fn negated(self) -> Duration {
        Duration(self.0.saturating_neg())
    }

    /// The duration for timers, if it is not negative.
    pub fn to_std(self) -> Option<std::time::Duration> {
        u64::try_from(self.0)
            .ok()
            .map(std::time::Duration::from_nanos)
    }

    /// The duration as `kubectl` prints an age: two or three digits.
    pub fn human(self) -> impl fmt::Display {
        Human(self)
    }
}

impl From<std::time::Duration> for Duration {
    fn from(span: std::time::Duration) -> Duration {
        Duration(i64::try_from(span.as_nanos()).unwrap_or(i64::MAX))
    }
}

/// Parses a duration in Go's format: numbers with units, `1h15m30.918s`, `-1.5h`, `300ms`.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    text.parse()
}

impl FromStr for Duration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Duration, DurationError> {
        let invalid = || DurationError::Invalid(text.to_owned());
        let negative = text.starts_with('-');
        let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
        if rest == "0" {
            return Ok(Duration::ZERO);
        }
        if rest.is_empty() {
            return Err(invalid());
        }

        let mut total = 0u64;
        while !rest.is_empty() {
            let (nanos, after) = read_component(rest).map_err(|refusal| match refusal {
                Refusal::Invalid => invalid(),
                Refusal::MissingUnit => DurationError::MissingUnit(text.to_owned()),
                Refusal::UnknownUnit(unit) => DurationError::UnknownUnit {
                    unit: unit.to_owned(),
                    text: text.to_owned(),
                },
            })?;

            total = total
                .checked_add(nanos)
                .filter(|total| *total <= LIMIT)
                .ok_or_else(invalid)?;

            rest = after;
        }

        let total = if negative {
            0i64.checked_sub_unsigned(total)
        } else {
            i64::try_from(total).ok()
        };

        total.map(Duration).ok_or_else(invalid)
    }
}

enum Refusal<'a> {
    Invalid,
    MissingUnit,
    UnknownUnit(&'a str),
}

/// One number with its unit in nanoseconds, and the rest.
fn read_component(text: &str) -> Result<(u64, &str), Refusal<'_>> {
    let (whole, rest) = split_digits(text);
    let (decimals, rest) = match rest.strip_prefix('.') {
        Some(rest) => split_digits(rest),
        None => ("", rest),
    };

    let value = whole_number(whole).ok_or(Refusal::Invalid)?;

    if whole.is_empty() && decimals.is_empty() {
        return Err(Refusal::Invalid);
    }

    let (name, rest) = rest.split_at(
        rest.find(|next: char| next == '.' || next.is_ascii_digit())
            .unwrap_or(rest.len()),
    );

    if name.is_empty() {
        return Err(Refusal::MissingUnit);
    }

    let unit = unit(name).ok_or(Refusal::UnknownUnit(name))?;
    let nanos = value
        .checked_mul(unit)
        .filter(|nanos| *nanos <= LIMIT)
        .ok_or(Refusal::Invalid)?;

    let nanos = nanos + fraction_of(unit, decimals);
    if nanos > LIMIT {
        Err(Refusal::Invalid)
    } else {
        Ok((nanos, rest))
    }
}

fn unit(name: &str) -> Option<u64> {
    match name {
        "ns" => Some(1),
        // The micro sign, and the Greek letter.
        "us" | "µs" | "μs" => Some(MICROSECOND),
        "ms" => Some(MILLISECOND),
        "s" => Some(SECOND),
        "m" => Some(MINUTE),
        "h" => Some(HOUR),
        _ => None,
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

/// The number, unless it exceeds any duration; no digits are zero.
fn whole_number(digits: &str) -> Option<u64> {
    digits.bytes().try_fold(0u64, |value, digit| {
        value
            .checked_mul(10)?
            .checked_add(u64::from(digit - b'0'))
            .filter(|value| *value <= LIMIT)
    })
}

/// Decimals of a unit in nanoseconds. In floating point, because Go does so and the last digit
/// shows.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a fraction of an hour in nanoseconds is positive and far below 2^64; its decimals are dropped"
)]
fn fraction_of(unit: u64, decimals: &str) -> u64 {
    let (mut value, mut scale) = (0u64, 1f64);
    for digit in decimals.bytes() {
        let Some(next) = value
            .checked_mul(10)
            .and_then(|value| value.checked_add(u64::from(digit - b'0')))
        else {
            break;
        };

        if value > (LIMIT - 1) / 10 || next > LIMIT {
            break;
        }

        (value, scale) = (next, scale * 10.0);
    }

    (value as f64 * (unit as f64 / scale)) as u64
}

/// The magnitude of the longest span.
const LIMIT: u64 = 1 << 63;

impl fmt::Display for Duration {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.unsigned_abs();

        if self.0 < 0 {
            out.write_str("-")?;
        }

        match nanos {
            0 => out.write_str("0s"),
            1..MICROSECOND => write!(out, "{nanos}ns"),
            MICROSECOND..MILLISECOND => write!(out, "{}µs", Decimal(nanos, MICROSECOND)),
            MILLISECOND..SECOND => write!(out, "{}ms", Decimal(nanos, MILLISECOND)),
            _ => {
                let (hours, minutes) = (nanos / HOUR, nanos / MINUTE % 60);
                if hours > 0 {
                    write!(out, "{hours}h")?;
                }
                if nanos >= MINUTE {
                    write!(out, "{minutes}m")?;
                }
                write!(out, "{}s", Decimal(nanos % MINUTE, SECOND))
            }
        }
    }
}

/// A number of units with as many decimals as it has.
struct Decimal(u64, u64);

impl fmt::Display for Decimal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Decimal(nanos, unit) = *self;
        write!(out, "{}", nanos / unit)?;
        let (mut rest, mut unit) = (nanos % unit, unit);
        if rest > 0 {
            out.write_str(".")?;
        }

        while rest > 0 {
            unit /= 10;
            write!(out, "{}", rest / unit)?;
            rest %= unit;
        }

        Ok(())
    }
}

struct Human(Duration);

impl fmt::Display for Human {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
        match () {
            // Clocks differ: up to two seconds in the future counts as now.
            () if seconds < -1 => out.write_str("<invalid>"),
            () if seconds < 0 => out.write_str("0s"),
            () if seconds < 120 => write!(out, "{seconds}s"),
            () if minutes < 10 => write_two(out, minutes, "m", seconds % 60, "s"),
            () if minutes < 180 => write!(out, "{minutes}m"),
            () if hours < 8 => write_two(out, hours, "h", minutes % 60, "m"),
            () if hours < 48 => write!(out, "{hours}h"),
            () if days < 8 => write_two(out, days, "d", hours % 24, "h"),
            () if days < 2 * 365 => write!(out, "{days}d"),
            () if days < 8 * 365 => write_two(out, days / 365, "y", days % 365, "d"),
            () => write!(out, "{}y", days / 365),
        }
    }
}

/// The larger unit, and the smaller if it is not zero.
fn write_two(
    out: &mut fmt::Formatter<'_>,
    large: i64,
    unit: &str,
    small: i64,
    small_unit: &str,
) -> fmt::Result {
    write!(out, "{large}{unit}")?;
    if small == 0 {
        Ok(())
    } else {
        write!(out, "{small}{small_unit}")
    }
}
