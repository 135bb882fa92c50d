//! Times and durations with Go's formats and messages.

use proptest::prelude::*;

use super::*;

#[test]
fn moments_are_read_with_fractions_and_offsets_and_written_in_utc() {
    let check = |text: &str, seconds: i64, nanos: u32, expected: &str| {
        let time = Time::parse(text).unwrap();
        assert_eq!(
            (time.0.unix_seconds(), time.0.subsec_nanos()),
            (seconds, nanos),
            "{text}"
        );
        assert_eq!(time.to_string(), expected, "{text}");
    };

    check("1970-01-01T00:00:00Z", 0, 0, "1970-01-01T00:00:00Z");
    check(
        "2026-03-01T12:00:00Z",
        1_772_366_400,
        0,
        "2026-03-01T12:00:00Z",
    );

    check(
        "2026-03-01T14:30:00.123456789123+02:30",
        1_772_366_400,
        123_456_789,
        "2026-03-01T12:00:00Z",
    );

    check(
        "2024-02-29T23:59:59-00:01",
        1_709_251_259,
        0,
        "2024-03-01T00:00:59Z",
    );

    check(
        "2026-03-01T7:00:00,5Z",
        1_772_348_400,
        500_000_000,
        "2026-03-01T07:00:00Z",
    );

    check(
        "0001-01-01T00:00:00Z",
        -62_135_596_800,
        0,
        "0001-01-01T00:00:00Z",
    );

    check(
        "0000-03-01T00:00:00Z",
        -62_162_035_200,
        0,
        "0000-03-01T00:00:00Z",
    );

    check(
        "9999-12-31T23:59:59Z",
        253_402_300_799,
        0,
        "9999-12-31T23:59:59Z",
    );

    assert!(Time::parse("0001-01-01T00:00:00Z").unwrap().0.is_zero());

    let micro = MicroTime::parse("2026-03-01T12:00:00.000001+00:00").unwrap();
    assert_eq!(
        (micro.0.subsec_nanos(), micro.to_string().as_str()),
        (1000, "2026-03-01T12:00:00.000001Z")
    );
}

#[test]
fn invalid_times_are_refused_in_gos_words() {
    let check = |text: &str, expected: &str| {
        assert_eq!(Time::parse(text).unwrap_err().to_string(), expected)
    };
    let layout = r#""2006-01-02T15:04:05Z07:00""#;
    check(
        "abc",
        &format!(r#"parsing time "abc" as {layout}: cannot parse "abc" as "2006""#),
    );

    check(
        "",
        &format!(r#"parsing time "" as {layout}: cannot parse "" as "2006""#),
    );

    check(
        "2026-1-02",
        &format!(r#"parsing time "2026-1-02" as {layout}: cannot parse "1-02" as "01""#),
    );

    check(
        "2026-01-02 15:04:05Z",
        &format!(
            r#"parsing time "2026-01-02 15:04:05Z" as {layout}: cannot parse " 15:04:05Z" as "T""#
        ),
    );

    check(
        "2026-13-02T00:00:00Z",
        r#"parsing time "2026-13-02T00:00:00Z": month out of range"#,
    );

    check(
        "2026-02-30T00:00:00Z",
        r#"parsing time "2026-02-30T00:00:00Z": day out of range"#,
    );

    check(
        "2026-02-03T00:00:00Zé",
        r#"parsing time "2026-02-03T00:00:00Z\xc3\xa9": extra text: "\xc3\xa9""#,
    );

    check(
        "2026-02-03T00:00:00+25:00",
        r#"parsing time "2026-02-03T00:00:00+25:00": time zone offset hour out of range"#,
    );

    let micro = MicroTime::parse("2026-02-03T00:00:00Z")
        .unwrap_err()
        .to_string();
    assert_eq!(
        micro,
        r#"parsing time "2026-02-03T00:00:00Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000""#
    );
}

#[test]
fn durations_are_read_and_written_as_go_does() {
    let check = |text: &str, expected: &str| {
        assert_eq!(
            parse_duration(text).map(|span| span.to_string()),
            Ok(expected.to_owned()),
            "{text}"
        );
    };

    check("0", "0s");
    check("1h2m3.5s", "1h2m3.5s");
    check("90m", "1h30m0s");
    check("1.5h", "1h30m0s");
    check("-.5s", "-500ms");
    check("1us", "1µs");

    check("1500ns", "1.5µs");
    check("0.000000001h", "3.6µs");
    check("1h1ns", "1h0m0.000000001s");
    check("2562047h47m16.854775807s", "2562047h47m16.854775807s");
    check("-2562047h47m16.854775808s", "-2562047h47m16.854775808s");
}

#[test]
fn invalid_durations_are_refused_in_gos_words() {
    let check = |text: &str, expected: &str| {
        assert_eq!(
            parse_duration(text).unwrap_err().to_string(),
            expected,
            "{text}"
        );
    };

    check("abc", r#"time: invalid duration "abc""#);
    check("", r#"time: invalid duration """#);
    check(".s", r#"time: invalid duration ".s""#);
    check("3000000h", r#"time: invalid duration "3000000h""#);
    check("5", r#"time: missing unit in duration "5""#);
    check("1d", r#"time: unknown unit "d" in duration "1d""#);
    check(
        "1é",
        r#"time: unknown unit "\xc3\xa9" in duration "1\xc3\xa9""#,
    );
}

#[test]
fn ages_are_shown_as_kubectl_shows_them() {
    let check = |seconds: i64, expected: &str| {
        assert_eq!(
            Duration::from_secs(seconds).human().to_string(),
            expected,
            "{seconds}"
        );
    };

    let (minute, hour, day) = (60, 3600, 86_400);
    check(-2, "<invalid>");
    check(-1, "0s");
    check(5, "5s");
    check(119, "119s");
    check(2 * minute, "2m");
    check(2 * minute + 3, "2m3s");
    check(10 * minute + 5, "10m");
    check(3 * hour - 1, "179m");

    check(3 * hour + 20 * minute, "3h20m");
    check(8 * hour + 59 * minute, "8h");
    check(5 * day + 4 * hour, "5d4h");
    check(7 * day, "7d");
    check(8 * day + 4 * hour, "8d");
    check(2 * 365 * day + 15 * day, "2y15d");
    check(3 * 365 * day, "3y");
    check(9 * 365 * day + 15 * day, "9y");
}

#[test]
fn moments_and_spans_add_up() {
    let noon = Timestamp::from_unix(1_772_366_400, 900_000_000);
    let span = parse_duration("1.2s").unwrap();
    assert_eq!(
        noon + span,
        Timestamp::from_unix(1_772_366_402, 100_000_000)
    );

    assert_eq!(noon + span - span, noon);
    assert_eq!((noon + span) - noon, span);
    assert_eq!(noon.since(noon + span), span.negated());
    assert_eq!(
        Timestamp::from_unix(i64::MAX, 0) - Timestamp::ZERO,
        Duration::from_nanos(i64::MAX)
    );

    assert_eq!(noon.truncated_to_seconds().subsec_nanos(), 0);
    assert_eq!(span.to_std(), Some(std::time::Duration::from_millis(1200)));
    assert_eq!(span.negated().to_std(), None);
    assert_eq!(
        Timestamp::from(SystemTime::UNIX_EPOCH),
        Timestamp::from_unix(0, 0)
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn every_moment_of_ten_thousand_years_reads_back(seconds in -62_167_219_200..253_402_300_800i64, micros in 0..1_000_000u32) {
        let moment = Timestamp::from_unix(seconds, micros * 1000);
        prop_assert_eq!(MicroTime::parse(&MicroTime(moment).to_string()), Ok(MicroTime(moment)));
        prop_assert_eq!(Time::parse(&Time(moment).to_string()), Ok(Time(moment.truncated_to_seconds())));
    }

    #[test]
    fn every_duration_reads_back(nanos: i64) {
        let span = Duration::from_nanos(nanos);
        prop_assert_eq!(parse_duration(&span.to_string()), Ok(span));
    }
}
