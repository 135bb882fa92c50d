//! How upstream holds an amount, because it shows: what is an integer, and how floating-point numbers
//! are rounded.
//!
//! Small amounts are 64 bits and a power of ten, others are numbers of any size. The power is that
//! of the last digit that was written or computed: `1.50` has -2.

use super::decimal::Decimal;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Form {
    big: bool,
    power: i32,
}

impl Form {
    pub(super) fn small(power: i32) -> Form {
        Form { big: false, power }
    }

    pub(super) fn big(power: i32) -> Form {
        Form { big: true, power }
    }

    pub(super) fn power(self) -> i32 {
        self.power
    }

    /// Whether upstream sees an integer, if 64 bits hold it.
    pub(super) fn is_whole(self) -> bool {
        !self.big && self.power >= 0
    }

    /// The form of the sum of two amounts.
    pub(super) fn of_sum(a: (Decimal, Form), b: (Decimal, Form), sum: Decimal) -> Form {
        let ((a, own), (b, other)) = (a, b);
        let power = own.power.min(other.power);
        if own.big || other.big {
            return Form::big(power);
        }
        if b.is_zero() {
            return own;
        }
        if a.is_zero() {
            return other;
        }

        let fits = [a, b, sum].iter().all(|amount| {
            amount
                .units(power)
                .is_some_and(|units| i64::try_from(units).is_ok())
        });
        match fits {
            true => Form::small(power),
            false => Form::big(power),
        }
    }

    pub(super) fn of_product(self, factor: i64, product: Decimal) -> Form {
        let fits = |power| {
            product
                .units(power)
                .is_some_and(|units| i64::try_from(units).is_ok())
        };
        match self {
            Form { big: false, .. } if factor == 0 => Form::small(0),
            Form { big: false, power } if fits(power) && fits(power.min(0)) => Form::small(power),
            Form { power, .. } => Form::big(power),
        }
    }

    /// After rounding to a power of ten.
    pub(super) fn rounded_up(self, power: i32) -> Form {
        match self.big {
            true => Form::big(power),
            false => Form::small(self.power.max(power)),
        }
    }
}

/// A power of ten as Go computes it: of large exponents a product or a quotient.
pub(super) fn power_of_ten(power: i32) -> f64 {
    let size = power.unsigned_abs();
    match (size, power >= 0) {
        (309.., true) => f64::INFINITY,
        (324.., false) => 0.0,
        (_, true) => parsed(size / 32 * 32, false) * parsed(size % 32, false),
        (_, false) => parsed(size / 32 * 32, true) / parsed(size % 32, false),
    }
}

/// The nearest number to a power of ten.
fn parsed(size: u32, negative: bool) -> f64 {
    let sign = if negative { "-" } else { "" };
    format!("1e{sign}{size}").parse().unwrap_or_default()
}
