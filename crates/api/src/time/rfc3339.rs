//! Parses a time as upstream's decoder does: one element of the layout after the other, and the
//! first mismatch is reported. As there, an hour may have one digit, and a comma may replace the
//! point.

use super::civil::{self, SECONDS_PER_DAY};
use super::{Quoted, Timestamp};

/// Why a text is no time, in Go's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    #[error(
        "parsing time {} as {}: cannot parse {} as {}",
        Quoted(text),
        Quoted(layout),
        Quoted(rest),
        Quoted(element)
    )]
    Element {
        text: String,
        layout: &'static str,
        rest: String,
        element: &'static str,
    },
    #[error("parsing time {}: {what} out of range", Quoted(text))]
    Range { text: String, what: &'static str },
    #[error("parsing time {}: extra text: {}", Quoted(text), Quoted(rest))]
    Extra { text: String, rest: String },
}

/// What may follow the seconds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fraction {
    /// Nothing, or any number of decimals.
    Optional,
    /// Six decimals.
    Micros,
}

pub(super) const SECOND_LAYOUT: &str = "2006-01-02T15:04:05Z07:00";
pub(super) const MICRO_LAYOUT: &str = "2006-01-02T15:04:05.000000Z07:00";

pub(super) fn parse(
    text: &str,
    layout: &'static str,
    fraction: Fraction,
) -> Result<Timestamp, TimeError> {
    read(text, fraction).map_err(|refusal| match refusal {
        Refusal::Element { rest, element } => TimeError::Element {
            text: text.to_owned(),
            layout,
            rest: rest.to_owned(),
            element,
        },
        Refusal::Range(what) => TimeError::Range {
            text: text.to_owned(),
            what,
        },
        Refusal::Extra(rest) => TimeError::Extra {
            text: text.to_owned(),
            rest: rest.to_owned(),
        },
    })
}

enum Refusal<'a> {
    Element {
        rest: &'a str,
        element: &'static str,
    },
    Range(&'static str),
    Extra(&'a str),
}

fn read(text: &str, fraction: Fraction) -> Result<Timestamp, Refusal<'_>> {
    let mut reader = Reader { rest: text };
    let year = reader.digits(4, "2006")?;
    reader.literal("-")?;
    let month = in_range(reader.digits(2, "01")?, 1, 12, "month")?;
    reader.literal("-")?;
    let day = reader.digits(2, "02")?;
    reader.literal("T")?;

    let hour = in_range(reader.hour()?, 0, 23, "hour")?;
    reader.literal(":")?;
    let minute = in_range(reader.digits(2, "04")?, 0, 59, "minute")?;
    reader.literal(":")?;
    let second = in_range(reader.digits(2, "05")?, 0, 59, "second")?;
    let nanos = match fraction {
        Fraction::Optional => reader.optional_fraction(),
        Fraction::Micros => reader.micros()?,
    };

    let offset = reader.offset()?;

    if !reader.rest.is_empty() {
        return Err(Refusal::Extra(reader.rest));
    }

    in_range(day, 1, civil::days_in_month(year, month), "day")?;
    let seconds =
        civil::days_to(year, month, day) * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second;

    Ok(Timestamp::from_unix(seconds - offset, nanos))
}

fn in_range(number: i64, low: i64, high: i64, what: &'static str) -> Result<i64, Refusal<'static>> {
    if (low..=high).contains(&number) {
        Ok(number)
    } else {
        Err(Refusal::Range(what))
    }
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn literal(&mut self, literal: &'static str) -> Result<(), Refusal<'a>> {
        self.rest = self.rest.strip_prefix(literal).ok_or(Refusal::Element {
            rest: self.rest,
            element: literal,
        })?;
        Ok(())
    }

    fn digits(&mut self, count: usize, element: &'static str) -> Result<i64, Refusal<'a>> {
        let refusal = Refusal::Element {
            rest: self.rest,
            element,
        };
        let digits = self.rest.get(..count).ok_or(refusal)?;
        let number = number(digits).ok_or(Refusal::Element {
            rest: self.rest,
            element,
        })?;
        self.rest = &self.rest[count..];
        Ok(number)
    }

    /// One digit or two.
    fn hour(&mut self) -> Result<i64, Refusal<'a>> {
        let two = self.rest.bytes().take(2).filter(u8::is_ascii_digit).count() == 2;
        self.digits(if two { 2 } else { 1 }, "15")
    }

    fn optional_fraction(&mut self) -> u32 {
        let Some(decimals) = self.rest.strip_prefix(['.', ',']) else {
            return 0;
        };
        let count = decimals.bytes().take_while(u8::is_ascii_digit).count();
        if count == 0 {
            return 0;
        }
        self.rest = &decimals[count..];
        nanos(&decimals[..count])
    }

    fn micros(&mut self) -> Result<u32, Refusal<'a>> {
        let decimals = self
            .rest
            .get(..7)
            .and_then(|text| text.strip_prefix(['.', ',']))
            .filter(|decimals| decimals.bytes().all(|byte| byte.is_ascii_digit()));
        let decimals = decimals.ok_or(Refusal::Element {
            rest: self.rest,
            element: ".000000",
        })?;
        self.rest = &self.rest[7..];
        Ok(nanos(decimals))
    }

    /// The offset from UTC, in seconds.
    fn offset(&mut self) -> Result<i64, Refusal<'a>> {
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(0);
        }

        let refusal = Refusal::Element {
            rest: self.rest,
            element: "Z07:00",
        };

        let Some((offset, rest)) = self
            .rest
            .as_bytes()
            .split_at_checked(6)
            .filter(|(offset, _)| offset[3] == b':')
        else {
            return Err(refusal);
        };

        let two = |digits: &[u8]| std::str::from_utf8(digits).ok().and_then(number);
        let hours = two(&offset[1..3]);
        let minutes = hours.and_then(|_| two(&offset[4..6]));

        // Upstream checks the range before the digits, and accepts 24:60.
        in_range(minutes.unwrap_or(0), 0, 60, "time zone offset minute")?;
        in_range(hours.unwrap_or(0), 0, 24, "time zone offset hour")?;
        let (Some(hours), Some(minutes), b'+' | b'-') = (hours, minutes, offset[0]) else {
            return Err(refusal);
        };
        self.rest = &self.rest[self.rest.len() - rest.len()..];
        let seconds = (hours * 60 + minutes) * 60;

        Ok(if offset[0] == b'-' { -seconds } else { seconds })
    }
}

/// A number of ASCII digits only.
fn number(digits: &str) -> Option<i64> {
    digits
        .bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| digits.parse().ok())?
}

/// Decimals as nanoseconds; those beyond the ninth are dropped.
fn nanos(decimals: &str) -> u32 {
    let decimals = decimals.bytes().chain(std::iter::repeat(b'0')).take(9);
    decimals.fold(0, |nanos, digit| nanos * 10 + u32::from(digit - b'0'))
}
