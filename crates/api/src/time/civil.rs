//! The calendar: days since 1970 to year, month and day, and back.
//!
//! Both directions count in eras of 400 years, which all have the same number of days, with years
//! that start in March, so that the leap day comes last.

use compact_str::format_compact;

use crate::Text;

pub(super) const SECONDS_PER_DAY: i64 = 86_400;
const DAYS_PER_ERA: i64 = 146_097;
/// Days from the first of March of the year 0 to 1970.
const DAYS_TO_1970: i64 = 719_468;

/// `2026-03-01T12:00:00`. Objects have many times, so this avoids the formatting machinery.
pub(super) fn date_and_time(seconds: i64) -> Text {
    let (year, month, day) = date(seconds.div_euclid(SECONDS_PER_DAY));
    let second = seconds.rem_euclid(SECONDS_PER_DAY);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    if !(0..=9999).contains(&year) {
        return format_compact!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
    }

    let mut text = *b"0000-00-00T00:00:00";
    let parts = [
        (0, year / 100),
        (2, year % 100),
        (5, month),
        (8, day),
        (11, hour),
        (14, minute),
        (17, second),
    ];

    for (at, number) in parts {
        let number = u8::try_from(number).expect("two digits");
        text[at] += number / 10;
        text[at + 1] += number % 10;
    }

    Text::new(std::str::from_utf8(&text).expect("digits and signs are ASCII"))
}

/// Year, month and day of a day counted from 1970.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + DAYS_TO_1970;
    let (era, day_of_era) = (days.div_euclid(DAYS_PER_ERA), days.rem_euclid(DAYS_PER_ERA));
    let leap_days = day_of_era / 1460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;

    let month = if march_month < 10 {
        march_month + 3
    } else {
        march_month - 9
    };

    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

/// The day counted from 1970 of a date.
pub(super) fn days_to(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let march_month = (month + 9) % 12;
    let day_of_year = (153 * march_month + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * DAYS_PER_ERA + day_of_era - DAYS_TO_1970
}

pub(super) fn days_in_month(year: i64, month: i64) -> i64 {
    let (next_year, next_month) = if month == 12 {
        (year + 1, 1)
    } else {
        (year, month + 1)
    };
    days_to(next_year, next_month, 1) - days_to(year, month, 1)
}
