//! Parses a quantity in one pass over its digits.
//!
//! The text is split into sign, digits before and after the point, and suffix. What is finer than a
//! nano is rounded away from zero, binary amounts beyond 2⁶³-1 are capped to it, and a text that
//! upstream would print unchanged is kept.

use super::decimal::{DIGITS, Decimal};
use super::form::Form;
use super::{Format, NANO, Quantity};
use crate::fuzz::steps;
use crate::value::Text;

/// Why a text is not a quantity, in upstream's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    #[error(
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Format,
    #[error("unable to parse numeric part of quantity")]
    Numeric,
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

pub(super) fn parse(text: &str) -> Result<Quantity, QuantityError> {
    if text.is_empty() {
        return Err(QuantityError::Format);
    }

    let parts = Parts::split(text)?;
    let suffix = Suffix::read(parts.suffix).ok_or(QuantityError::Suffix)?;
    let plain = parts.is_plain(suffix);
    if !plain && !parts.has_digits {
        return Err(QuantityError::Numeric);
    }

    let (amount, format) = match suffix {
        Suffix::Decimal { power, format } => (parts.times_ten_to(power), format),
        Suffix::Binary { shift } => parts.times_two_to(shift),
    };

    if amount.parts().1 > MAX_POWER {
        return Err(QuantityError::Suffix);
    }

    let amount = if parts.negative {
        amount.negated()
    } else {
        amount
    };

    let form = parts.form(suffix, plain, amount);
    let kept = text == "0" || (plain && parts.is_kept(suffix));
    Ok(Quantity {
        amount,
        form,
        format,
        text: if kept {
            Text::new(text)
        } else {
            Text::default()
        },
    })
}

/// The parts of a quantity's text. `whole` has no leading zeros.
struct Parts<'a> {
    negative: bool,
    whole: &'a [u8],
    fraction: &'a [u8],
    has_digits: bool,
    suffix: &'a [u8],
}

impl<'a> Parts<'a> {
    fn split(text: &'a str) -> Result<Parts<'a>, QuantityError> {
        steps::count(text.len());
        let (negative, rest) = match text.as_bytes() {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            rest => (false, rest),
        };
        let (digits, rest) = split_while(rest, u8::is_ascii_digit);

        let (fraction, suffix) = match rest {
            [b'.', rest @ ..] => split_while(rest, u8::is_ascii_digit),
            rest => (&rest[..0], rest),
        };
        let (_, rest) = split_while(suffix, |byte| b"eEinumkKMGTP".contains(byte));
        let rest = rest
            .strip_prefix(b"+")
            .or_else(|| rest.strip_prefix(b"-"))
            .unwrap_or(rest);

        if !rest.iter().all(u8::is_ascii_digit) {
            return Err(QuantityError::Format);
        }

        let (_, whole) = split_while(digits, |byte| *byte == b'0');
        let has_digits = !digits.is_empty() || !fraction.is_empty();

        Ok(Parts {
            negative,
            whole,
            fraction,
            has_digits,
            suffix,
        })
    }

    /// The number of digits, where an empty integer part counts as one digit.
    fn digit_count(&self) -> usize {
        self.whole.len().max(1) + self.fraction.len()
    }

    /// Whether upstream parses this without big numbers: only then does it keep the text, or accept
    /// missing digits.
    fn is_plain(&self, suffix: Suffix) -> bool {
        match suffix {
            Suffix::Decimal { power, .. } => {
                self.digit_count() <= 18 && self.last_power(power) >= i64::from(NANO)
            }
            Suffix::Binary { shift } => {
                let suffix_digits =
                    usize::try_from(shift).map_or(usize::MAX, |shift| shift * 3 / 10);
                self.fraction.is_empty() && self.digit_count() + suffix_digits < 15
            }
        }
    }

    /// How upstream holds the amount.
    fn form(&self, suffix: Suffix, plain: bool, amount: Decimal) -> Form {
        let power = match suffix {
            Suffix::Decimal { power, .. } => self.last_power(power),
            Suffix::Binary { .. } => self.last_power(0),
        };
        let power = i32::try_from(power).unwrap_or(i32::MIN);
        let is_capped = matches!(suffix, Suffix::Binary { .. })
            && amount.as_integer().is_some_and(|whole| whole.abs() == CAP);
        match (plain, is_capped) {
            (true, _) => Form::small(power),
            (false, true) => Form::big(0),
            (false, false) if amount.is_zero() => Form::big(power),
            (false, false) => Form::big(NANO),
        }
    }

    /// Whether a plain text is close enough to the canonical form to be kept.
    fn is_kept(&self, suffix: Suffix) -> bool {
        match suffix {
            // Digits whose number is no multiple of eight cannot use a larger suffix.
            Suffix::Binary { .. } => self.value() & 7 != 0,
            Suffix::Decimal { power, .. } => {
                let starts_with_zero = self.whole.is_empty();
                let last_three = self.whole.iter().chain(self.fraction).rev().take(3);
                let ends_in_thousands = last_three.filter(|digit| **digit == b'0').count() == 3;
                self.last_power(power) % 3 == 0 && !ends_in_thousands && !starts_with_zero
            }
        }
    }

    /// The digits as a number; for plain texts only.
    fn value(&self) -> u64 {
        self.whole
            .iter()
            .chain(self.fraction)
            .fold(0, |value, digit| value * 10 + u64::from(digit - b'0'))
    }

    /// The power of ten of the last digit.
    fn last_power(&self, power: i32) -> i64 {
        i64::from(power) - i64::try_from(self.fraction.len()).unwrap_or(i64::MAX / 2)
    }

    /// The digits times a power of ten, rounded up to a nano and to as many digits as fit.
    fn times_ten_to(&self, power: i32) -> Decimal {
        let leading = if self.whole.is_empty() {
            zeros_at_start(self.fraction)
        } else {
            0
        };
        let count = self.whole.len() + self.fraction.len() - leading;

        let last_power = self.last_power(power);
        let too_fine = usize::try_from(i64::from(NANO) - last_power).unwrap_or(0);
        let too_many = count.saturating_sub(DIGITS as usize);
        let dropped = too_fine.max(too_many);
        let kept = count.saturating_sub(dropped);

        steps::count(count);
        let mut digits = self.whole.iter().chain(self.fraction).skip(leading);
        let coefficient = digits
            .by_ref()
            .take(kept)
            .fold(0i128, |value, digit| value * 10 + i128::from(digit - b'0'));

        let rest = digits.any(|digit| *digit != b'0');
        let power = last_power.saturating_add_unsigned(dropped as u64);
        let power = i32::try_from(power).unwrap_or(if power < 0 { NANO } else { i32::MAX });

        Decimal::new(coefficient + i128::from(rest), power)
    }

    /// The digits times a power of two, rounded up to a nano and capped. An amount below one that
    /// is not zero is printed with decimal suffixes.
    fn times_two_to(&self, shift: u32) -> (Decimal, Format) {
        let whole = self.whole_times_two_to(shift);
        let (nanos, mut amount) = match whole {
            None => (0, Decimal::new(CAP, 0)),
            Some(whole) => {
                let nanos = self.fraction_nanos(shift);
                (nanos, Decimal::new(whole * NANOS_PER_UNIT + nanos, NANO))
            }
        };

        let cap = Decimal::new(CAP, 0);
        if amount > cap {
            amount = cap;
        }

        let below_one = whole == Some(0) && nanos > 0 && nanos < NANOS_PER_UNIT;
        (
            amount,
            if below_one {
                Format::DecimalSi
            } else {
                Format::BinarySi
            },
        )
    }

    fn whole_times_two_to(&self, shift: u32) -> Option<i128> {
        // More digits than the cap has; those that fit cannot overflow.
        if self.whole.len() > 19 {
            return None;
        }
        let whole = self
            .whole
            .iter()
            .fold(0i128, |value, digit| value * 10 + i128::from(digit - b'0'));
        whole.checked_mul(1 << shift).filter(|units| *units <= CAP)
    }

    /// The fraction's digits times a power of two in nanos, rounded up: long multiplication, from
    /// the last digit.
    fn fraction_nanos(&self, shift: u32) -> i128 {
        steps::count(self.fraction.len());
        let factor = NANOS_PER_UNIT << shift;
        let (mut carry, mut rest) = (0i128, false);
        for digit in self.fraction.iter().rev() {
            let sum = i128::from(digit - b'0') * factor + carry;
            rest |= sum % 10 != 0;
            carry = sum / 10;
        }
        carry + i128::from(rest)
    }
}

fn zeros_at_start(digits: &[u8]) -> usize {
    digits.iter().take_while(|digit| **digit == b'0').count()
}

fn split_while(bytes: &[u8], holds: impl Fn(&u8) -> bool) -> (&[u8], &[u8]) {
    bytes.split_at(bytes.iter().take_while(|byte| holds(byte)).count())
}

/// The meaning of a suffix.
#[derive(Clone, Copy)]
enum Suffix {
    Decimal { power: i32, format: Format },
    Binary { shift: u32 },
}

impl Suffix {
    fn read(suffix: &[u8]) -> Option<Suffix> {
        let decimal = |power| {
            Some(Suffix::Decimal {
                power,
                format: Format::DecimalSi,
            })
        };

        let binary = |shift| Some(Suffix::Binary { shift });
        match suffix {
            b"n" => decimal(-9),
            b"u" => decimal(-6),
            b"m" => decimal(-3),
            b"" => decimal(0),
            b"k" => decimal(3),
            b"M" => decimal(6),
            b"G" => decimal(9),
            b"T" => decimal(12),
            b"P" => decimal(15),
            b"E" => decimal(18),
            b"Ki" => binary(10),
            b"Mi" => binary(20),
            b"Gi" => binary(30),
            b"Ti" => binary(40),
            b"Pi" => binary(50),
            b"Ei" => binary(60),
            [b'e' | b'E', exponent @ ..] => {
                let power = std::str::from_utf8(exponent).ok()?.parse::<i32>().ok()?;
                Some(Suffix::Decimal {
                    power,
                    format: Format::DecimalExponent,
                })
            }
            _ => None,
        }
    }
}

const NANOS_PER_UNIT: i128 = 1_000_000_000;
/// The maximum amount with a binary suffix.
const CAP: i128 = i64::MAX as i128;
/// Far beyond any use, and far enough from the limits of an `i32` that sums of powers do not
/// overflow.
const MAX_POWER: i32 = 1_000_000_000;
