use super::*;
use crate::time::Time;

#[test]
fn schedules_are_parsed_or_refused_in_the_parsers_words() {
    let check = |schedule: &str, expected: Result<(), &str>| {
        let read = Schedule::parse(schedule, None)
            .map(|_| ())
            .map_err(|why| why.to_string());
        assert_eq!(read, expected.map_err(str::to_owned), "{schedule}");
    };

    check("*/5 1-3 1,15 jan-dec MON", Ok(()));
    check("@daily", Ok(()));
    check("@every 1h30m", Ok(()));
    check(
        "@every x",
        Err("failed to parse duration @every x: time: invalid duration \"x\""),
    );

    check("@bogus", Err("unrecognized descriptor: @bogus"));
    check(
        "* * * *",
        Err("expected exactly 5 fields, found 4: [* * * *]"),
    );

    check(
        "60 * * * *",
        Err("end of range (60) above maximum (59): 60"),
    );

    check(
        "* * 0 * *",
        Err("beginning of range (0) below minimum (1): 0"),
    );

    check(
        "5-3 * * * *",
        Err("beginning of range (5) beyond end of range (3): 5-3"),
    );

    check(
        "*/0 * * * *",
        Err("step of range should be a positive number: */0"),
    );

    check("1-2-3 * * * *", Err("too many hyphens: 1-2-3"));
    check("*/1/2 * * * *", Err("too many slashes: */1/2"));
    check(
        "x * * * *",
        Err("failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax"),
    );

    check(
        "TZ=Mars/X * * * * *",
        Err("provided bad location Mars/X: unknown time zone Mars/X"),
    );

    check("TZ=UTC 0 * * * *", Ok(()));
}

#[test]
fn the_next_time_is_found() {
    let check = |schedule: &str, zone: Option<&str>, after: &str, expected: &str| {
        let found = Schedule::parse(schedule, zone)
            .unwrap()
            .next(Time::parse(after).unwrap().0);
        let found = found
            .map(|at| Time(at).text().to_string())
            .unwrap_or_default();
        assert_eq!(found, expected, "{schedule} {zone:?} after {after}");
    };

    check(
        "* * * * *",
        None,
        "2026-01-01T12:00:00Z",
        "2026-01-01T12:01:00Z",
    );

    check(
        "* * * * *",
        None,
        "2026-01-01T12:00:01Z",
        "2026-01-01T12:01:00Z",
    );

    check(
        "*/15 * * * *",
        None,
        "2026-01-01T12:50:00Z",
        "2026-01-01T13:00:00Z",
    );

    check(
        "0 0 1 1 *",
        None,
        "2026-01-01T00:00:00Z",
        "2027-01-01T00:00:00Z",
    );

    check(
        "30 4 29 2 *",
        None,
        "2026-01-01T00:00:00Z",
        "2028-02-29T04:30:00Z",
    );

    check("0 0 31 2 *", None, "2026-01-01T00:00:00Z", "");
    check(
        "0 9 * * mon-fri",
        None,
        "2026-01-02T10:00:00Z",
        "2026-01-05T09:00:00Z",
    );

    // Either the 13th or a Friday.
    check(
        "0 0 13 * fri",
        None,
        "2026-01-01T00:00:00Z",
        "2026-01-02T00:00:00Z",
    );

    check(
        "0 0 13 * fri",
        None,
        "2026-01-09T00:00:00Z",
        "2026-01-13T00:00:00Z",
    );

    check(
        "@every 90s",
        None,
        "2026-01-01T12:00:00Z",
        "2026-01-01T12:01:30Z",
    );

    check(
        "@hourly",
        None,
        "2026-01-01T12:00:00Z",
        "2026-01-01T13:00:00Z",
    );

    check(
        "0 6 * * *",
        Some("Asia/Kolkata"),
        "2026-01-01T00:00:00Z",
        "2026-01-01T00:30:00Z",
    );

    check(
        "TZ=America/New_York 0 6 * * *",
        None,
        "2026-01-01T00:00:00Z",
        "2026-01-01T11:00:00Z",
    );

    // Clocks go forward at 2 in Berlin: times in the gap are skipped.
    check(
        "30 2 * * *",
        Some("Europe/Berlin"),
        "2026-03-28T12:00:00Z",
        "2026-03-30T00:30:00Z",
    );

    // Clocks go back at 3: the time occurs twice.
    check(
        "30 2 * * *",
        Some("Europe/Berlin"),
        "2026-10-24T12:00:00Z",
        "2026-10-25T00:30:00Z",
    );

    check(
        "30 2 * * *",
        Some("Europe/Berlin"),
        "2026-10-25T00:30:00Z",
        "2026-10-25T01:30:00Z",
    );
}

#[test]
fn a_time_is_formatted_in_its_zone() {
    let noon = Time::parse("2026-01-01T12:00:00Z").unwrap().0;
    assert_eq!(
        in_zone(noon, "UTC").as_deref(),
        Some("2026-01-01T12:00:00Z")
    );

    assert_eq!(
        in_zone(noon, "Europe/Berlin").as_deref(),
        Some("2026-01-01T13:00:00+01:00")
    );

    assert_eq!(
        in_zone(noon, "America/St_Johns").as_deref(),
        Some("2026-01-01T08:30:00-03:30")
    );

    assert_eq!(in_zone(noon, "europe/berlin"), None);
    assert!(is_known_zone("Europe/Berlin") && !is_known_zone("Mars/Olympus"));
}
