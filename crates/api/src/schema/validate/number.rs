//! Validates numbers.
//!
//! Upstream compares in the value's own type of number, with bounds converted to it; a bound that
//! does not fit the declared type is reported, and then compared as a double.

use std::fmt;

use super::Walk;
use super::violation::Outcome;
use crate::Value;
use crate::go_text::Float;
use crate::schema::node::{Bound, Checks, Node, Type, Types};
use crate::value::Path;

impl Walk<'_> {
    pub(super) fn number(
        &self,
        node: &Node,
        checks: Option<&Checks>,
        value: &Value,
        at: &Path<'_>,
        out: &mut Outcome,
    ) {
        out.matched(2);
        let kind = Kind::of(node, checks);
        if !kind.holds(value) {
            out.fail(|| self.out_of_range("Checked", kind, at));
        }

        let Some(checks) = checks else { return };
        if let Some(factor) = checks.multiple_of {
            let native = self.bound_fits("MultipleOf", factor, kind, at, out);
            self.multiple_of(value, factor, native, at, out);
        }

        if let Some(least) = checks.minimum {
            let native = self.bound_fits("Minimum boundary", least.value, kind, at, out);
            self.compare(value, least, native, &LEAST, at, out);
        }

        if let Some(most) = checks.maximum {
            let native = self.bound_fits("Maximum boundary", most.value, kind, at, out);
            self.compare(value, most, native, &MOST, at, out);
        }
    }

    fn bound_fits(
        &self,
        what: &str,
        bound: f64,
        kind: Kind,
        at: &Path<'_>,
        out: &mut Outcome,
    ) -> bool {
        let fits = kind.holds(&Value::Float(bound));
        if !fits {
            out.fail(|| self.out_of_range(what, kind, at));
        }
        fits
    }

    fn out_of_range(&self, what: &str, kind: Kind, at: &Path<'_>) -> super::Violation {
        let wanted = match kind {
            Kind::Int32 => "integer with format int32",
            Kind::Int64 => "integer with format int64",
            Kind::Integer => "integer (default format)",
            Kind::Float => "number with format float",
            Kind::Any => "",
        };
        self.invalid_somewhere(format!(
            "{what} value must be of type {wanted} in {}",
            at.with_dots()
        ))
    }

    fn compare(
        &self,
        value: &Value,
        bound: Bound,
        native: bool,
        side: &Side,
        at: &Path<'_>,
        out: &mut Outcome,
    ) {
        let limit = Number::of_bound(bound.value, value, native);
        let number = Number::of(value, native);
        if !((side.beyond)(number, limit) || bound.exclusive && number == limit) {
            return;
        }

        let words = if bound.exclusive {
            side.exclusive
        } else {
            side.inclusive
        };
        out.fail(|| self.invalid(number.to_string(), &format!("{words} {limit}"), at));
    }

    fn multiple_of(
        &self,
        value: &Value,
        factor: f64,
        native: bool,
        at: &Path<'_>,
        out: &mut Outcome,
    ) {
        let (number, factor) = (
            Number::of(value, native),
            Number::of_bound(factor, value, native),
        );

        let (positive, multiple) = match (number, factor) {
            (Number::Int(number), Number::Int(factor)) => {
                (factor > 0, factor > 0 && number % factor == 0)
            }
            (number, factor) => {
                let (number, factor) = (number.float(), factor.float());
                let quotient = if factor < 1.0 {
                    1.0 / factor * number
                } else {
                    number / factor
                };
                (factor > 0.0, is_whole(quotient))
            }
        };

        if !positive {
            let message = || {
                format!(
                    "factor MultipleOf declared for {} must be positive: {factor}",
                    at.with_dots()
                )
            };
            out.fail(|| self.invalid_in_words(factor.to_string(), message(), at));
        } else if !multiple {
            out.fail(|| {
                self.invalid(
                    number.to_string(),
                    &format!("should be a multiple of {factor}"),
                    at,
                )
            });
        }
    }
}

/// A number in the type in which it is compared and printed.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Number {
    Int(i64),
    Float(f64),
}

impl Number {
    fn of(value: &Value, native: bool) -> Number {
        match value {
            Value::Int(number) if native => Number::Int(*number),
            _ => Number::Float(as_float(value)),
        }
    }

    /// A bound in the type of the value that is compared with it.
    fn of_bound(bound: f64, value: &Value, native: bool) -> Number {
        match value {
            Value::Int(_) if native => Number::Int(truncated(bound)),
            _ => Number::Float(bound),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "upstream compares doubles, too")]
    fn float(self) -> f64 {
        match self {
            Number::Int(number) => number as f64,
            Number::Float(number) => number,
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Int(number) => write!(out, "{number}"),
            Number::Float(number) => write!(out, "{}", Float(*number)),
        }
    }
}

/// The two bounds, minimum and maximum.
struct Side {
    beyond: fn(Number, Number) -> bool,
    inclusive: &'static str,
    exclusive: &'static str,
}

static LEAST: Side = Side {
    beyond: |number, limit| number < limit,
    inclusive: "should be greater than or equal to",
    exclusive: "should be greater than",
};

static MOST: Side = Side {
    beyond: |number, limit| number > limit,
    inclusive: "should be less than or equal to",
    exclusive: "should be less than",
};

/// The range of a declared type and format.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Int32,
    Int64,
    /// An integer without a format.
    Integer,
    Float,
    Any,
}

impl Kind {
    fn of(node: &Node, checks: Option<&Checks>) -> Kind {
        let format = checks.map_or("", |checks| checks.format_name.as_str());
        match (&node.types, format) {
            (Types::One(Type::Integer), "int32") => Kind::Int32,
            (Types::One(Type::Integer), "int64") => Kind::Int64,
            (Types::One(Type::Integer), _) => Kind::Integer,
            (Types::One(Type::Number), "float") => Kind::Float,
            _ => Kind::Any,
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "whether it fits is the question"
    )]
    fn holds(self, value: &Value) -> bool {
        match (self, value) {
            (Kind::Any, _) | (Kind::Int64 | Kind::Integer, Value::Int(_)) => true,
            (Kind::Int32, Value::Int(number)) => i32::try_from(*number).is_ok(),
            (Kind::Int32, _) => {
                let number = as_float(value);
                number.fract() == 0.0
                    && (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&number)
            }
            (Kind::Int64 | Kind::Integer, _) => {
                let number = as_float(value);
                number.fract() == 0.0 && (-TWO_TO_63..TWO_TO_63).contains(&number)
            }
            (Kind::Float, _) => (as_float(value) as f32).is_finite(),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "upstream compares doubles, too")]
fn as_float(value: &Value) -> f64 {
    match value {
        Value::Int(number) => *number as f64,
        Value::Float(number) => *number,
        _ => 0.0,
    }
}

/// A double truncated to an integer, as amd64 does: out of range becomes the least one.
#[expect(
    clippy::cast_possible_truncation,
    reason = "in range, the fraction is cut off"
)]
pub(super) fn truncated(number: f64) -> i64 {
    if (-TWO_TO_63..TWO_TO_63).contains(&number) {
        number as i64
    } else {
        i64::MIN
    }
}

/// Whether a double represents an integer, within rounding errors.
pub(super) fn is_whole(number: f64) -> bool {
    const LARGEST: f64 = 9_007_199_254_740_991.0;
    const TOLERANCE: f64 = 1e-9;
    if !(-LARGEST..=LARGEST).contains(&number) {
        return false;
    }
    let whole = number.trunc();
    number == whole || (number >= 1.0 && (number - whole) / (number + whole) < TOLERANCE)
}

const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;
