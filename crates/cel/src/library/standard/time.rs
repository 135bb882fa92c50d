//! Parts of times and durations.

use crate::declare::Run::Planned;
use crate::declare::Sig::{Duration, Int, String, Timestamp};
use crate::declare::{CostClass, Function, method};

#[rustfmt::skip]
pub(in crate::library) const FUNCTIONS: &[Function] = &[
    Function {
        name: "getFullYear",
        overloads: &[
            method("timestamp_to_year", &[Timestamp], Int, CostClass::One, Planned),
            method("timestamp_to_year_with_tz", &[Timestamp, String], Int, CostClass::One, Planned),
        ],
    },
    Function {
        name: "getMonth",
        overloads: &[
            method("timestamp_to_month", &[Timestamp], Int, CostClass::One, Planned),
            method("timestamp_to_month_with_tz", &[Timestamp, String], Int, CostClass::One, Planned),
        ],
    },
    Function {
        name: "getDayOfYear",
        overloads: &[
            method("timestamp_to_day_of_year", &[Timestamp], Int, CostClass::One, Planned),
            method("timestamp_to_day_of_year_with_tz", &[Timestamp, String], Int, CostClass::One, Planned),
        ],
    },
    Function {
        name: "getDayOfMonth",
        overloads: &[
            method("timestamp_to_day_of_month", &[Timestamp], Int, CostClass::One, Planned),
            method("timestamp_to_day_of_month_with_tz", &[Timestamp, String], Int, CostClass::One, Planned),
        ],
    },
    Function {
        name: "getDate",
        overloads: &[
            method("timestamp_to_day_of_month_1_based", &[Timestamp], Int, CostClass::One, Planned),
            method("timestamp_to_day_of_month_1_based_with_tz", &[Timestamp, String], Int, CostClass::One, Planned),
        ],
    },
    Function {
        name: "getDayOfWeek",
        overloads: &[
            method("timestamp_to_day_of_week", &[Timestamp], Int, CostClass::One, Planned),
            method("timestamp_to_day_of_week_with_tz", &[Timestamp, String], Int, CostClass::One, Planned),
        ],
    },
    Function {
        name: "getHours",
        overloads: &[
            method("timestamp_to_hours", &[Timestamp], Int, CostClass::One, Planned),
            method("timestamp_to_hours_with_tz", &[Timestamp, String], Int, CostClass::One, Planned),
            method("duration_to_hours", &[Duration], Int, CostClass::One, Planned),
        ],
    },
    Function {
        name: "getMinutes",
        overloads: &[
            method("timestamp_to_minutes", &[Timestamp], Int, CostClass::One, Planned),
            method("timestamp_to_minutes_with_tz", &[Timestamp, String], Int, CostClass::One, Planned),
            method("duration_to_minutes", &[Duration], Int, CostClass::One, Planned),
        ],
    },
    Function {
        name: "getSeconds",
        overloads: &[
            method("timestamp_to_seconds", &[Timestamp], Int, CostClass::One, Planned),
            method("timestamp_to_seconds_tz", &[Timestamp, String], Int, CostClass::One, Planned),
            method("duration_to_seconds", &[Duration], Int, CostClass::One, Planned),
        ],
    },
    Function {
        name: "getMilliseconds",
        overloads: &[
            method("timestamp_to_milliseconds", &[Timestamp], Int, CostClass::One, Planned),
            method("timestamp_to_milliseconds_with_tz", &[Timestamp, String], Int, CostClass::One, Planned),
            method("duration_to_milliseconds", &[Duration], Int, CostClass::One, Planned),
        ],
    },
];
