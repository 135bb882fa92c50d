//! The standard library.

mod affix;
mod arithmetic;
mod clock;
mod conversions;
mod convert;
mod operators;
mod text;
mod time;

pub(crate) use arithmetic::add;
pub(super) use arithmetic::contains as list_contains;
pub(super) use conversions::FUNCTIONS as CONVERSIONS;
pub(crate) use convert::text_of;
pub(super) use operators::FUNCTIONS as OPERATORS;
pub(super) use text::FUNCTIONS as TEXT;
pub(super) use time::FUNCTIONS as TIME;

/// What the tables name.
mod run {
    pub(super) use super::affix::{contains, ends_with, matches, starts_with};
    pub(super) use super::arithmetic::{
        add, contains_element, divide, greater, greater_or_equal, less, less_or_equal, modulo,
        multiply, negate, not, same, size, subtract, type_of,
    };
    pub(super) use super::clock::{
        date_of_month, day_of_month, day_of_week, day_of_year, full_year, hours, milliseconds,
        minutes, month, seconds, total_hours, total_milliseconds, total_minutes, total_seconds,
    };
    pub(super) use super::convert::{
        to_bool, to_bytes, to_double, to_duration, to_int, to_string, to_timestamp, to_uint,
    };
}
