//! The wall clock, and its format in container logs.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since 1970.
pub(crate) fn now() -> i64 {
    let time = clock_gettime(ClockId::Realtime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Nanoseconds of the monotonic clock.
pub(crate) fn monotonic() -> i64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Formats a time as RFC 3339, in UTC with nine fractional digits.
pub(crate) fn rfc3339(nanoseconds: i64) -> String {
    let (seconds, fraction) = (
        nanoseconds.div_euclid(1_000_000_000),
        nanoseconds.rem_euclid(1_000_000_000),
    );
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:09}Z")
}

/// Year, month and day, so many days after 1970-01-01. Counts in years that begin in March, so that
/// the leap day is last.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;

    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };

    (year + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_rfc_3339_has_them() {
        let check = |nanoseconds, expected: &str| assert_eq!(rfc3339(nanoseconds), expected);
        check(0, "1970-01-01T00:00:00.000000000Z");
        check(951_782_399_000_000_001, "2000-02-28T23:59:59.000000001Z");
        check(951_782_400_000_000_000, "2000-02-29T00:00:00.000000000Z");
        check(1_794_812_049_123_456_789, "2026-11-16T06:54:09.123456789Z");
        check(4_107_542_400_000_000_000, "2100-03-01T00:00:00.000000000Z");
    }
}
