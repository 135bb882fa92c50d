//! Formats of dates, times and durations.

use crate::time::parse_duration;

/// `2006-01-02`, a valid date.
pub(super) fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return false;
    }

    let (Some(year), Some(month), Some(day)) = (
        number(&bytes[..4]),
        number(&bytes[5..7]),
        number(&bytes[8..]),
    ) else {
        return false;
    };

    (1..=12).contains(&month) && (1..=days_in(year, month)).contains(&day)
}

fn days_in(year: u32, month: u32) -> u32 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn number(digits: &[u8]) -> Option<u32> {
    let digit = |number: u32, byte: &u8| {
        byte.is_ascii_digit()
            .then(|| number * 10 + u32::from(byte - b'0'))
    };
    digits.iter().try_fold(0, digit)
}

/// A date, `T`, and a time with a zone. Text after another `T` is ignored.
pub(super) fn is_date_time(text: &str) -> bool {
    let mut parts = text.split(['t', 'T']);
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else {
        return false;
    };
    is_date(date) && is_time(time)
}

/// `15:04:05.999Z`, `15:04:05+01:00`. Any character may precede the fraction.
fn is_time(text: &str) -> bool {
    let Some((clock, rest)) = text.split_at_checked(8) else {
        return false;
    };
    let clock = clock.as_bytes();
    let in_range = |digits: &[u8], limit: u32| number(digits).is_some_and(|number| number <= limit);
    let good = clock[2] == b':'
        && clock[5] == b':'
        && in_range(&clock[..2], 23)
        && in_range(&clock[3..5], 59)
        && in_range(&clock[6..], 59);
    good && (is_zone(rest) || without_fraction(rest).is_some_and(is_zone))
}

fn without_fraction(text: &str) -> Option<&str> {
    let mut characters = text.chars();
    characters.next().filter(|point| *point != '\n')?;
    let digits = characters.as_str();
    let rest = digits.trim_start_matches(|digit: char| digit.is_ascii_digit());
    (rest.len() < digits.len()).then_some(rest)
}

fn is_zone(text: &str) -> bool {
    match text.as_bytes() {
        [b'z' | b'Z'] => true,
        [b'+' | b'-', hours @ .., b':', m, n] => {
            hours.len() == 2 && number(hours).is_some() && m.is_ascii_digit() && n.is_ascii_digit()
        }
        _ => false,
    }
}

/// `1h30m` as Go formats durations, or a text that contains something like `3 days`.
pub(super) fn is_duration(text: &str) -> bool {
    parse_duration(text).is_ok() || names_a_duration(text)
}

/// Searches for numbers with units. One that is too large fails the text, an unknown unit is
/// ignored.
fn names_a_duration(text: &str) -> bool {
    let mut found = false;
    let mut rest = text;
    while let Some(start) = rest.find(|digit: char| digit.is_ascii_digit()) {
        let behind = rest[start..].trim_start_matches(|digit: char| digit.is_ascii_digit());
        let digits = &rest[start..rest.len() - behind.len()];
        let word = behind.trim_start_matches(['\t', '\n', '\x0c', '\r', ' ']);
        rest =
            word.trim_start_matches(|letter: char| letter.is_ascii_alphabetic() || letter == 'µ');

        let unit = &word[..word.len() - rest.len()];
        if unit.is_empty() {
            rest = behind;
            continue;
        }

        if digits.parse::<i64>().is_err() {
            return false;
        }

        found |= is_unit(&unit.to_ascii_lowercase());
    }

    found
}

/// The long names may have suffixes: `seconds`, `weekly`.
fn is_unit(unit: &str) -> bool {
    const SHORT: [&str; 12] = [
        "ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk", "sec",
    ];
    const LONG: [&str; 8] = [
        "nano", "micro", "milli", "sec", "min", "hour", "day", "week",
    ];
    SHORT.contains(&unit) || LONG.iter().any(|long| unit.starts_with(long))
}
