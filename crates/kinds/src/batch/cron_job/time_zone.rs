//! The time zone of a CronJob.

use coracle_api::cron::is_known_zone;

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
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
                .to_owned(),
        );
    }

    if !is_known_zone(zone) && zone != "Local" {
        wrong.push(unknown());
    }

    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

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
