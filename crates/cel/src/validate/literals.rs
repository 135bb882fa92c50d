//! Literals that are converted, or matched, when the expression is evaluated.

use coracle_api::schema::Pattern;
use coracle_api::time;

use crate::ast::Literal;

/// The seconds of the years 1 to 9999.
const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

pub(super) fn is_duration(literal: &Literal) -> bool {
    match literal {
        Literal::String(text) => time::parse_duration(text).is_ok(),
        // There is an overload for it, but the conversion always fails.
        Literal::Int(_) => false,
        _ => true,
    }
}

pub(super) fn is_timestamp(literal: &Literal) -> bool {
    match literal {
        Literal::String(text) => {
            let parsed = time::Time::parse(text);
            parsed.is_ok_and(|time| SECONDS.contains(&time.0.unix_seconds()))
        }
        Literal::Int(seconds) => SECONDS.contains(seconds),
        _ => true,
    }
}

pub(super) fn is_pattern(literal: &Literal) -> bool {
    match literal {
        Literal::String(text) => Pattern::new(text).is_ok(),
        _ => true,
    }
}
