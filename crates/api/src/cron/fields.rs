//! The five fields of a schedule: minute, hour, day of the month, month, day of the week.

use super::ScheduleError;
use crate::go_text::{Quoted, parse_int};

/// Name, range and symbolic names of a field.
struct Bounds {
    least: u64,
    most: u64,
    names: &'static [&'static str],
}

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

const FIELDS: [Bounds; 5] = [
    Bounds {
        least: 0,
        most: 59,
        names: &[],
    },
    Bounds {
        least: 0,
        most: 23,
        names: &[],
    },
    Bounds {
        least: 1,
        most: 31,
        names: &[],
    },
    Bounds {
        least: 1,
        most: 12,
        names: &MONTHS,
    },
    Bounds {
        least: 0,
        most: 6,
        names: &DAYS,
    },
];

/// The bit that marks a field as `*`.
const ANY: u64 = 1 << 63;

/// The allowed numbers of each field, one bit per number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fields([u64; 5]);

impl Fields {
    pub(super) fn parse(text: &str) -> Result<Fields, ScheduleError> {
        let fields: Vec<&str> = text.split_whitespace().collect();
        if fields.len() != FIELDS.len() {
            return Err(ScheduleError(format!(
                "expected exactly {} fields, found {}: [{}]",
                FIELDS.len(),
                fields.len(),
                fields.join(" ")
            )));
        }

        let mut bits = [0; 5];
        for ((field, bounds), bits) in fields.into_iter().zip(&FIELDS).zip(&mut bits) {
            for part in field.split(',').filter(|part| !part.is_empty()) {
                *bits |= range(part, bounds).map_err(ScheduleError)?;
            }
        }

        Ok(Fields(bits))
    }

    fn has(&self, field: usize, number: i8) -> bool {
        u32::try_from(number).is_ok_and(|number| self.0[field] & (1 << number) != 0)
    }

    pub(super) fn has_minute(&self, minute: i8) -> bool {
        self.has(0, minute)
    }

    pub(super) fn has_hour(&self, hour: i8) -> bool {
        self.has(1, hour)
    }

    pub(super) fn has_month(&self, month: i8) -> bool {
        self.has(3, month)
    }

    /// Where both day fields are restricted, matching either suffices.
    pub(super) fn has_day(&self, of_month: i8, of_week: i8) -> bool {
        let (month, week) = (self.has(2, of_month), self.has(4, of_week));
        if (self.0[2] | self.0[4]) & ANY != 0 {
            month && week
        } else {
            month || week
        }
    }
}

fn range(part: &str, bounds: &Bounds) -> Result<u64, String> {
    let range_and_step: Vec<&str> = part.split('/').collect();
    let low_and_high: Vec<&str> = range_and_step[0].split('-').collect();

    let mut any = 0;
    let (start, mut end) = if matches!(low_and_high[0], "*" | "?") {
        any = ANY;
        (bounds.least, bounds.most)
    } else {
        let start = number_or_name(low_and_high[0], bounds)?;
        match low_and_high.len() {
            1 => (start, start),
            2 => (start, number_or_name(low_and_high[1], bounds)?),
            _ => return Err(format!("too many hyphens: {part}")),
        }
    };

    let step = match range_and_step.len() {
        1 => 1,
        2 => {
            let step = number(range_and_step[1])?;
            if low_and_high.len() == 1 {
                end = bounds.most;
            }
            if step > 1 {
                any = 0;
            }
            step
        }
        _ => return Err(format!("too many slashes: {part}")),
    };

    let (least, most) = (bounds.least, bounds.most);
    if start < least {
        return Err(format!(
            "beginning of range ({start}) below minimum ({least}): {part}"
        ));
    }

    if end > most {
        return Err(format!(
            "end of range ({end}) above maximum ({most}): {part}"
        ));
    }

    if start > end {
        return Err(format!(
            "beginning of range ({start}) beyond end of range ({end}): {part}"
        ));
    }

    if step == 0 {
        return Err(format!("step of range should be a positive number: {part}"));
    }

    let (step, mut bits, mut number) = (step.min(most + 1), any, start);
    while number <= end {
        bits |= 1 << number;
        number += step;
    }

    Ok(bits)
}

fn number_or_name(text: &str, bounds: &Bounds) -> Result<u64, String> {
    let lower = text.to_lowercase();
    let index = bounds
        .names
        .iter()
        .zip(bounds.least..)
        .find(|(name, _)| **name == lower);
    index.map_or_else(|| number(text), |(_, value)| Ok(value))
}

fn number(text: &str) -> Result<u64, String> {
    let read = parse_int(text);
    let read = read.map_err(|why| {
        format!(
            "failed to parse int from {text}: strconv.Atoi: parsing {}: {why}",
            Quoted(text)
        )
    })?;
    u64::try_from(read).map_err(|_| format!("negative number ({read}) not allowed: {text}"))
}
