//! The canonical text of a quantity: no fraction, the largest suffix that allows it, the sign in
//! front.

use std::fmt;

use super::Format;
use super::decimal::Decimal;

pub(super) fn write(amount: Decimal, format: Format, out: &mut impl fmt::Write) -> fmt::Result {
    if amount.is_zero() {
        return out.write_str("0");
    }
    match (format, amount.as_integer()) {
        // Below 1024 no binary suffix fits, and a fraction has none.
        (Format::BinarySi, Some(integer)) if integer.abs() >= 1024 => write_binary(integer, out),
        (Format::DecimalExponent, _) => write_decimal(amount, Format::DecimalExponent, out),
        _ => write_decimal(amount, Format::DecimalSi, out),
    }
}

fn write_binary(integer: i128, out: &mut impl fmt::Write) -> fmt::Result {
    let (mut integer, mut times) = (integer, 0);
    while integer % 1024 == 0 && times < BINARY_SUFFIXES.len() - 1 {
        integer /= 1024;
        times += 1;
    }
    write!(out, "{integer}{}", BINARY_SUFFIXES[times])
}

fn write_decimal(amount: Decimal, format: Format, out: &mut impl fmt::Write) -> fmt::Result {
    let (coefficient, power) = amount.parts();

    // Suffixes are thousands apart, so up to two zeros remain. They are written as text, because 37
    // digits and two more exceed the coefficient's type.
    let zeros = power.rem_euclid(3);
    let power = power - zeros;
    write!(
        out,
        "{coefficient}{}",
        &"00"[..usize::try_from(zeros).expect("a remainder by three")]
    )?;

    match format {
        _ if power == 0 => Ok(()),
        Format::DecimalSi if (-9..=18).contains(&power) => {
            let index = usize::try_from(power / 3 + 3).expect("at least -9, so at least zero");
            out.write_str(DECIMAL_SUFFIXES[index])
        }
        // Beyond exa there is no letter, and omitting the power would change the amount.
        _ => write!(out, "e{power}"),
    }
}

const BINARY_SUFFIXES: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const DECIMAL_SUFFIXES: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
