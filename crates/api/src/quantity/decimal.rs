//! A decimal number of bounded size: a coefficient of at most 37 digits and a power of ten.
//!
//! The coefficient never ends in a zero, so that equal numbers are equal pairs. Results that need
//! more digits are rounded; the error is less than one part in 10³⁴.

use std::cmp::Ordering;

/// `coefficient × 10^power`. The coefficient has no trailing zero; zero itself is `(0, 0)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Decimal {
    coefficient: i128,
    power: i32,
}

/// Every coefficient of this many digits fits in 127 bits, and so does the sum of any ten of them.
pub(super) const DIGITS: u32 = 37;

impl Decimal {
    pub(super) fn new(coefficient: i128, power: i32) -> Decimal {
        if coefficient == 0 {
            return Decimal::default();
        }
        let (mut coefficient, mut power) = (coefficient, power);
        while coefficient % 10 == 0 {
            coefficient /= 10;
            power = power.saturating_add(1);
        }
        Decimal { coefficient, power }
    }

    pub(super) fn parts(self) -> (i128, i32) {
        (self.coefficient, self.power)
    }

    pub(super) fn is_zero(self) -> bool {
        self.coefficient == 0
    }

    pub(super) fn signum(self) -> i32 {
        match self.coefficient.cmp(&0) {
            Ordering::Less => -1,
            Ordering::Equal => 0,
            Ordering::Greater => 1,
        }
    }

    pub(super) fn negated(self) -> Decimal {
        Decimal {
            coefficient: -self.coefficient,
            ..self
        }
    }

    pub(super) fn is_whole_in(self, power: i32) -> bool {
        self.power >= power
    }

    /// Rounded away from zero to a multiple of `10^power`.
    pub(super) fn rounded_up(self, power: i32) -> Decimal {
        if self.is_whole_in(power) {
            self
        } else {
            Decimal::new(self.shifted_up(power), power)
        }
    }

    /// The whole number of `10^power`s, away from zero, capped to 64 bits.
    pub(super) fn in_units_of(self, power: i32) -> i64 {
        let limit = if self.coefficient < 0 {
            i64::MIN
        } else {
            i64::MAX
        };
        self.units(power)
            .and_then(|units| i64::try_from(units).ok())
            .unwrap_or(limit)
    }

    pub(super) fn as_i64(self) -> Option<i64> {
        if self.is_whole_in(0) {
            self.shifted_down(0)?.try_into().ok()
        } else {
            None
        }
    }

    pub(super) fn as_integer(self) -> Option<i128> {
        if self.is_whole_in(0) {
            self.shifted_down(0)
        } else {
            None
        }
    }

    pub(super) fn to_f64(self) -> f64 {
        // Through text, because that conversion rounds once; a product with a power of ten rounds
        // twice.
        format!("{}e{}", self.coefficient, self.power)
            .parse()
            .expect("digits, an e and an exponent are a float")
    }

    pub(super) fn plus(self, other: Decimal) -> Decimal {
        let (low, high) = if self.power <= other.power {
            (self, other)
        } else {
            (other, self)
        };

        if low.is_zero() || high.is_zero() {
            return if low.is_zero() { high } else { low };
        }

        let exact = high
            .shifted_down(low.power)
            .and_then(|high| high.checked_add(low.coefficient));
        match exact {
            Some(sum) => Decimal::fitted(sum, low.power),
            None => high.plus_rounded(low),
        }
    }

    /// The sum of numbers without common digits: to 36 digits of the larger one.
    fn plus_rounded(self, other: Decimal) -> Decimal {
        let power = self
            .top_power()
            .max(other.top_power())
            .saturating_sub_unsigned(DIGITS - 2);
        let units = |part: Decimal| {
            part.units(power)
                .expect("at most 36 digits, because no number has a higher top")
        };
        Decimal::fitted(units(self) + units(other), power)
    }

    pub(super) fn times(self, factor: i64) -> Decimal {
        let factor = i128::from(factor);
        if let Some(product) = self.coefficient.checked_mul(factor) {
            return Decimal::fitted(product, self.power);
        }

        // Half of the digits times 64 bits always fit.
        const HALF: i128 = 10i128.pow(DIGITS / 2);

        let upper = Decimal::fitted(
            self.coefficient / HALF * factor,
            self.power.saturating_add_unsigned(DIGITS / 2),
        );

        let lower = Decimal::fitted(self.coefficient % HALF * factor, self.power);
        upper.plus(lower)
    }

    /// Rounds to the maximum number of digits.
    fn fitted(coefficient: i128, power: i32) -> Decimal {
        const LIMIT: i128 = 10i128.pow(DIGITS);
        let (mut coefficient, mut power) = (coefficient, power);
        while coefficient.abs() >= LIMIT {
            coefficient = coefficient / 10 + (coefficient % 10).signum();
            power = power.saturating_add(1);
        }
        Decimal::new(coefficient, power)
    }

    /// The power of ten of the first digit.
    fn top_power(self) -> i32 {
        let digits = self
            .coefficient
            .unsigned_abs()
            .checked_ilog10()
            .unwrap_or(0);
        self.power.saturating_add_unsigned(digits)
    }

    /// The coefficient at any power: exact at a smaller one, if it fits; away from zero at a larger
    /// one.
    pub(super) fn units(self, power: i32) -> Option<i128> {
        if self.is_whole_in(power) {
            self.shifted_down(power)
        } else {
            Some(self.shifted_up(power))
        }
    }

    /// The coefficient at a smaller power, if it fits.
    fn shifted_down(self, power: i32) -> Option<i128> {
        if self.is_zero() {
            return Some(0);
        }
        self.coefficient
            .checked_mul(ten_to(self.power.abs_diff(power))?)
    }

    /// The coefficient at a larger power, away from zero.
    fn shifted_up(self, power: i32) -> i128 {
        match ten_to(power.abs_diff(self.power)) {
            Some(unit) => self.coefficient / unit + (self.coefficient % unit).signum(),
            None => self.coefficient.signum(),
        }
    }

    fn cmp_magnitude(self, other: Decimal) -> Ordering {
        if self.is_zero() || other.is_zero() {
            return self
                .coefficient
                .unsigned_abs()
                .cmp(&other.coefficient.unsigned_abs());
        }

        self.top_power().cmp(&other.top_power()).then_with(|| {
            // The same number of digits at the smaller power, so at most one digit more than fits.
            let power = self.power.min(other.power);
            match (self.shifted_down(power), other.shifted_down(power)) {
                (Some(mine), Some(others)) => mine.unsigned_abs().cmp(&others.unsigned_abs()),
                (None, _) => Ordering::Greater,
                (_, None) => Ordering::Less,
            }
        })
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Decimal) -> Ordering {
        self.signum().cmp(&other.signum()).then_with(|| {
            let magnitudes = self.cmp_magnitude(*other);
            if self.coefficient < 0 {
                magnitudes.reverse()
            } else {
                magnitudes
            }
        })
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Decimal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn ten_to(power: u32) -> Option<i128> {
    10i128.checked_pow(power)
}
