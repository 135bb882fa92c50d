//! Amounts of resources: `100m`, `1.5Gi`, `12e6`.
//!
//! A text is parsed (`parse`) into a decimal number of up to 37 significant digits with its power
//! of ten (`decimal`), together with its notation; printing (`canonical`) uses that notation in the
//! form upstream would choose. Like in upstream, a text that is already acceptable is printed
//! unchanged.
//!
//! Sums and products are exact up to 37 digits, which is everything below 10²⁸ in steps of a nano;
//! beyond that they are right to 34 digits. A text of more than 37 digits is rounded away from
//! zero. Comparison is exact.

mod canonical;
mod decimal;
mod form;
mod parse;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use crate::value::{Text, Value};
use decimal::Decimal;
use form::Form;
pub use parse::QuantityError;

/// An exact amount, and its notation. Equality and order are those of the amount alone.
#[derive(Clone, Debug, Default)]
pub struct Quantity {
    amount: Decimal,
    form: Form,
    format: Format,
    /// The text it was parsed from, where that is printed unchanged; empty otherwise.
    text: Text,
}

/// The family of suffixes a quantity is printed with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// `12M`: powers of ten by letter.
    #[default]
    DecimalSi,
    /// `12Mi`: powers of 1024 by letter.
    BinarySi,
    /// `12e6`: powers of ten by number.
    DecimalExponent,
}

/// The power of ten that [`Quantity::scaled_value`] counts in: milli.
pub const MILLI: i32 = -3;
/// The finest fraction a quantity keeps.
pub const NANO: i32 = -9;

impl Quantity {
    /// `value` whole units.
    pub fn new(value: i64, format: Format) -> Quantity {
        Quantity::scaled(value, 0, format)
    }

    /// `value` thousandths.
    pub fn from_milli(value: i64, format: Format) -> Quantity {
        Quantity::scaled(value, MILLI, format)
    }

    /// `value` times the given power of ten.
    pub fn scaled(value: i64, power: i32, format: Format) -> Quantity {
        Quantity {
            amount: Decimal::new(value.into(), power),
            form: Form::small(power),
            format,
            text: Text::default(),
        }
    }

    /// A quantity of an object: a string, or a number. Null is zero.
    pub fn from_value(value: &Value) -> Result<Quantity, QuantityError> {
        match value {
            Value::String(text) => text.trim().parse(),
            Value::Int(number) => number.to_string().parse(),
            Value::Float(number) => number.to_string().parse(),
            Value::Null => Ok(Quantity::default()),
            _ => Err(QuantityError::Format),
        }
    }

    pub fn format(&self) -> Format {
        self.format
    }

    pub fn is_zero(&self) -> bool {
        self.amount.is_zero()
    }

    /// -1, 0 or 1.
    pub fn signum(&self) -> i32 {
        self.amount.signum()
    }

    /// Whole units, rounded away from zero; a value beyond 64 bits is the nearest that fits.
    pub fn value(&self) -> i64 {
        self.scaled_value(0)
    }

    /// Thousandths, rounded and capped like [`Quantity::value`].
    pub fn milli_value(&self) -> i64 {
        self.scaled_value(MILLI)
    }

    /// The amount counted in a power of ten, rounded and capped like [`Quantity::value`].
    pub fn scaled_value(&self, power: i32) -> i64 {
        self.amount.in_units_of(power)
    }

    /// The amount as an integer of 64 bits, where upstream has it as one: not that of `1000m`.
    pub fn as_i64(&self) -> Option<i64> {
        match self.form.is_whole() {
            true => self.amount.as_i64(),
            false => None,
        }
    }

    /// The nearest floating-point number, for ratios and metrics.
    pub fn to_f64(&self) -> f64 {
        self.amount.to_f64()
    }

    /// A floating-point number near the amount, rounded twice as upstream rounds it.
    pub fn approximate_f64(&self) -> f64 {
        let power = self.form.power();
        match self.amount.units(power) {
            Some(units) => units as f64 * form::power_of_ten(power),
            None => self.amount.to_f64(),
        }
    }

    /// Rounds away from zero to a multiple of a power of ten. Returns whether nothing was lost.
    pub fn round_up(&mut self, power: i32) -> bool {
        self.form = self.form.rounded_up(power);
        if self.amount.is_whole_in(power) {
            return true;
        }
        self.text.clear();
        self.amount = self.amount.rounded_up(power);
        false
    }

    /// Adds; a zero takes over the other's notation.
    pub fn add(&mut self, other: &Quantity) {
        self.take_format_if_zero(other);
        self.add_amount(other.amount, other.form);
    }

    /// Subtracts; see [`Quantity::add`].
    pub fn sub(&mut self, other: &Quantity) {
        self.take_format_if_zero(other);
        self.add_amount(other.amount.negated(), other.form);
    }

    fn add_amount(&mut self, amount: Decimal, form: Form) {
        let sum = self.amount.plus(amount);
        self.form = Form::of_sum((self.amount, self.form), (amount, form), sum);
        self.set(sum);
    }

    pub fn neg(&mut self) {
        self.set(self.amount.negated());
    }

    pub fn mul(&mut self, factor: i64) {
        let product = self.amount.times(factor);
        self.form = self.form.of_product(factor, product);
        self.set(product);
    }

    fn take_format_if_zero(&mut self, other: &Quantity) {
        if self.is_zero() {
            self.format = other.format;
        }
    }

    fn set(&mut self, amount: Decimal) {
        self.text.clear();
        self.amount = amount;
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Quantity, QuantityError> {
        parse::parse(text)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.text.is_empty() {
            canonical::write(self.amount, self.format, out)
        } else {
            out.write_str(&self.text)
        }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Quantity) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Quantity {}

impl Ord for Quantity {
    fn cmp(&self, other: &Quantity) -> Ordering {
        self.amount.cmp(&other.amount)
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Quantity) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
