//! Parts of times and durations.

use super::run::{
    date_of_month, day_of_month, day_of_week, day_of_year, full_year, hours, milliseconds, minutes,
    month, seconds, total_hours, total_milliseconds, total_minutes, total_seconds,
};
use crate::declare::Run::Strict;
use crate::declare::Sig::{Duration, Int, String, Timestamp};
use crate::declare::{CostClass, Function, method};

#[rustfmt::skip]
pub(in crate::library) const FUNCTIONS: &[Function] = &[
    Function {
        name: "getFullYear",
        overloads: &[
            method("timestamp_to_year", &[Timestamp], Int, CostClass::One, Strict(full_year)),
            method("timestamp_to_year_with_tz", &[Timestamp, String], Int, CostClass::One, Strict(full_year)),
        ],
    },
    Function {
        name: "getMonth",
        overloads: &[
            method("timestamp_to_month", &[Timestamp], Int, CostClass::One, Strict(month)),
            method("timestamp_to_month_with_tz", &[Timestamp, String], Int, CostClass::One, Strict(month)),
        ],
    },
    Function {
        name: "getDayOfYear",
        overloads: &[
            method("timestamp_to_day_of_year", &[Timestamp], Int, CostClass::One, Strict(day_of_year)),
            method("timestamp_to_day_of_year_with_tz", &[Timestamp, String], Int, CostClass::One, Strict(day_of_year)),
        ],
    },
    Function {
        name: "getDayOfMonth",
        overloads: &[
            method("timestamp_to_day_of_month", &[Timestamp], Int, CostClass::One, Strict(day_of_month)),
            method("timestamp_to_day_of_month_with_tz", &[Timestamp, String], Int, CostClass::One, Strict(day_of_month)),
        ],
    },
    Function {
        name: "getDate",
        overloads: &[
            method("timestamp_to_day_of_month_1_based", &[Timestamp], Int, CostClass::One, Strict(date_of_month)),
            method("timestamp_to_day_of_month_1_based_with_tz", &[Timestamp, String], Int, CostClass::One, Strict(date_of_month)),
        ],
    },
    Function {
        name: "getDayOfWeek",
        overloads: &[
            method("timestamp_to_day_of_week", &[Timestamp], Int, CostClass::One, Strict(day_of_week)),
            method("timestamp_to_day_of_week_with_tz", &[Timestamp, String], Int, CostClass::One, Strict(day_of_week)),
        ],
    },
    Function {
        name: "getHours",
        overloads: &[
            method("timestamp_to_hours", &[Timestamp], Int, CostClass::One, Strict(hours)),
            method("timestamp_to_hours_with_tz", &[Timestamp, String], Int, CostClass::One, Strict(hours)),
            method("duration_to_hours", &[Duration], Int, CostClass::One, Strict(total_hours)),
        ],
    },
    Function {
        name: "getMinutes",
        overloads: &[
            method("timestamp_to_minutes", &[Timestamp], Int, CostClass::One, Strict(minutes)),
            method("timestamp_to_minutes_with_tz", &[Timestamp, String], Int, CostClass::One, Strict(minutes)),
            method("duration_to_minutes", &[Duration], Int, CostClass::One, Strict(total_minutes)),
        ],
    },
    Function {
        name: "getSeconds",
        overloads: &[
            method("timestamp_to_seconds", &[Timestamp], Int, CostClass::One, Strict(seconds)),
            method("timestamp_to_seconds_tz", &[Timestamp, String], Int, CostClass::One, Strict(seconds)),
            method("duration_to_seconds", &[Duration], Int, CostClass::One, Strict(total_seconds)),
        ],
    },
    Function {
        name: "getMilliseconds",
        overloads: &[
            method("timestamp_to_milliseconds", &[Timestamp], Int, CostClass::One, Strict(milliseconds)),
            method("timestamp_to_milliseconds_with_tz", &[Timestamp, String], Int, CostClass::One, Strict(milliseconds)),
            method("duration_to_milliseconds", &[Duration], Int, CostClass::One, Strict(total_milliseconds)),
        ],
    },
];
