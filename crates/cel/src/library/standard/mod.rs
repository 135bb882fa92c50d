//! The standard library.

mod conversions;
mod operators;
mod text;
mod time;

pub(super) use conversions::FUNCTIONS as CONVERSIONS;
pub(super) use operators::FUNCTIONS as OPERATORS;
pub(super) use text::FUNCTIONS as TEXT;
pub(super) use time::FUNCTIONS as TIME;
