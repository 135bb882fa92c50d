//! Parts of times and durations. Without a zone, times are in UTC.

use coracle_api::cron::offset_in_zone;
use coracle_api::go_text::{NumberError, Quoted, parse_int};
use coracle_api::time::{Time, TimeError, Timestamp};

use crate::declare::NativeResult;
use crate::eval::{Context, EvalError};
use crate::value::{Moment, Value};

const SECONDS_PER_DAY: i64 = 86_400;
/// The first and the last second of the years 1 to 9999.
const FIRST: i64 = -62_135_596_800;
const LAST: i64 = 253_402_300_799;

impl Moment {
    /// # Errors
    /// The text is no RFC 3339 time. The error is Go's.
    pub(crate) fn parse(text: &str) -> Result<Moment, TimeError> {
        let Time(at) = Time::parse(text)?;
        let offset = match text.as_bytes() {
            [.., sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
                let two = |high: u8, low: u8| i32::from(high - b'0') * 10 + i32::from(low - b'0');
                let seconds = two(*h1, *h2) * 3600 + two(*m1, *m2) * 60;
                if *sign == b'-' { -seconds } else { seconds }
            }
            _ => 0,
        };
        Ok(Moment {
            seconds: at.unix_seconds(),
            nanos: at.subsec_nanos(),
            offset,
        })
    }

    /// The time, if it is in the years 1 to 9999.
    pub(crate) fn checked(self) -> Result<Moment, EvalError> {
        if (FIRST..=LAST).contains(&self.seconds) {
            Ok(self)
        } else {
            Err(EvalError::TimestampOverflow)
        }
    }

    /// With as many decimals as it has.
    pub(crate) fn rfc3339(self) -> String {
        let local = Timestamp::from_unix(self.seconds + i64::from(self.offset), 0);
        let mut text = Time(local).text().trim_end_matches('Z').to_owned();
        if self.nanos > 0 {
            let decimals = format!("{:09}", self.nanos);
            text.push('.');
            text.push_str(decimals.trim_end_matches('0'));
        }

        let minutes = self.offset.abs() / 60;
        match self.offset {
            0 => text.push('Z'),
            offset => {
                let sign = if offset < 0 { '-' } else { '+' };
                text.push_str(&format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60));
            }
        }
        text
    }
}

impl PartialEq for Moment {
    fn eq(&self, other: &Self) -> bool {
        (self.seconds, self.nanos) == (other.seconds, other.nanos)
    }
}

impl Eq for Moment {}

/// A local time.
struct Local {
    year: i64,
    month: i64,
    day: i64,
    /// From 0.
    day_of_year: i64,
    /// From Sunday.
    weekday: i64,
    second: i64,
    nanos: u32,
}

impl Local {
    fn of(at: Moment, offset: i64) -> Local {
        let seconds = at.seconds + offset;
        let days = seconds.div_euclid(SECONDS_PER_DAY);
        let (year, month, day) = date(days);
        Local {
            year,
            month,
            day,
            day_of_year: days - days_to_year(year),
            weekday: (days + 4).rem_euclid(7),
            second: seconds.rem_euclid(SECONDS_PER_DAY),
            nanos: at.nanos,
        }
    }
}

/// Days from 1970 to the first of January.
fn days_to_year(year: i64) -> i64 {
    let before = year - 1;
    before * 365 + before.div_euclid(4) - before.div_euclid(100) + before.div_euclid(400) - 719_162
}

fn date(days: i64) -> (i64, i64, i64) {
    // Not later than the year, and only a few before it.
    let longest = if days < 0 { 365 } else { 366 };
    let mut year = 1970 + days.div_euclid(longest);
    while days_to_year(year + 1) <= days {
        year += 1 + (days - days_to_year(year + 1)) / 366;
    }

    let leap = days_to_year(year + 1) - days_to_year(year) == 366;
    let mut rest = days - days_to_year(year);
    let lengths = [
        31,
        28 + i64::from(leap),
        31,
        30,
        31,
        30,
        31,
        31,
        30,
        31,
        30,
        31,
    ];

    let mut month = 1;
    for length in lengths {
        if rest < length {
            break;
        }
        rest -= length;
        month += 1;
    }
    (year, month, rest + 1)
}

/// The offset of a zone: a name of the tz database, or hours and minutes.
fn offset(at: Moment, zone: &str) -> Result<i64, EvalError> {
    let Some((hours, minutes)) = zone.split_once(':') else {
        return named_offset(at, zone);
    };

    let number = |text: &str| {
        parse_int(text).map_err(|error| {
            let why = match error {
                NumberError::Syntax => "invalid syntax",
                NumberError::Range => "value out of range",
            };
            EvalError::failed(format!("strconv.Atoi: parsing {}: {why}", Quoted(text)))
        })
    };

    let (hours, minutes) = (number(hours)?, number(minutes)?);
    let whole = hours.wrapping_mul(60);
    let total = if zone.starts_with('-') {
        whole.wrapping_sub(minutes)
    } else {
        whole.wrapping_add(minutes)
    };

    // What is beyond some centuries is no offset, and would overflow the calendar.
    const MOST: i64 = 60 * 24 * 366 * 200;
    Ok(total.clamp(-MOST, MOST) * 60)
}

fn named_offset(at: Moment, zone: &str) -> Result<i64, EvalError> {
    if matches!(zone, "" | "UTC" | "Local") {
        return Ok(0);
    }
    if zone.contains("..") || zone.starts_with(['/', '\\']) {
        return Err(EvalError::failed("time: invalid location name"));
    }
    // Upstream reads zones from files of these names.
    if ZONE_FOLDERS.contains(&zone.trim_end_matches('/')) {
        return Err(EvalError::failed("is a directory"));
    }
    match offset_in_zone(Timestamp::from_unix(at.seconds, at.nanos), zone) {
        Some(seconds) => Ok(seconds.into()),
        None => Err(EvalError::failed(format!("unknown time zone {zone}"))),
    }
}

const ZONE_FOLDERS: [&str; 21] = [
    ".",
    "Africa",
    "America",
    "America/Argentina",
    "America/Indiana",
    "America/Kentucky",
    "America/North_Dakota",
    "Antarctica",
    "Arctic",
    "Asia",
    "Atlantic",
    "Australia",
    "Brazil",
    "Canada",
    "Chile",
    "Etc",
    "Europe",
    "Indian",
    "Mexico",
    "Pacific",
    "US",
];

fn local(args: &[Value<'_>]) -> Result<Local, EvalError> {
    let Value::Timestamp(at) = args[0] else {
        return Err(EvalError::NoSuchOverload);
    };
    let offset = match args.get(1) {
        Some(zone) => offset(at, zone.as_str().ok_or(EvalError::NoSuchOverload)?)?,
        None => 0,
    };
    Ok(Local::of(at, offset))
}

macro_rules! parts {
    ($($name:ident = $part:expr;)*) => {$(
        pub(in crate::library) fn $name<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
            let part: fn(&Local) -> i64 = $part;
            Ok(Value::Int(part(&local(args)?)))
        }
    )*};
}

parts! {
    full_year = |at| at.year;
    month = |at| at.month - 1;
    day_of_year = |at| at.day_of_year;
    day_of_month = |at| at.day - 1;
    date_of_month = |at| at.day;
    day_of_week = |at| at.weekday;
    hours = |at| at.second / 3600;
    minutes = |at| at.second / 60 % 60;
    seconds = |at| at.second % 60;
    milliseconds = |at| i64::from(at.nanos / 1_000_000);
}

fn nanos(args: &[Value<'_>]) -> Result<i64, EvalError> {
    match args[0] {
        Value::Duration(span) => Ok(span.as_nanos()),
        _ => Err(EvalError::NoSuchOverload),
    }
}

pub(in crate::library) fn total_hours<'a>(
    _: &mut Context<'_>,
    args: &[Value<'a>],
) -> NativeResult<'a> {
    Ok(Value::Int(nanos(args)? / 3_600_000_000_000))
}

pub(in crate::library) fn total_minutes<'a>(
    _: &mut Context<'_>,
    args: &[Value<'a>],
) -> NativeResult<'a> {
    Ok(Value::Int(nanos(args)? / 60_000_000_000))
}

pub(in crate::library) fn total_seconds<'a>(
    _: &mut Context<'_>,
    args: &[Value<'a>],
) -> NativeResult<'a> {
    Ok(Value::Int(nanos(args)? / 1_000_000_000))
}

pub(in crate::library) fn total_milliseconds<'a>(
    _: &mut Context<'_>,
    args: &[Value<'a>],
) -> NativeResult<'a> {
    Ok(Value::Int(nanos(args)? / 1_000_000))
}
