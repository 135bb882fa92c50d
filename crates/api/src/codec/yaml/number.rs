//! Numbers as Go formats and parses them.

use base64::Engine;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};

/// A signed integer, with the prefixes `0x`, `0b`, `0o` and `0` for octal.
pub(super) fn int(text: &str) -> Option<i64> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let magnitude = uint(digits)?;
    if negative {
        0i64.checked_sub_unsigned(magnitude)
    } else {
        i64::try_from(magnitude).ok()
    }
}

/// The same without a sign.
pub(super) fn uint(text: &str) -> Option<u64> {
    let (radix, digits) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &text[2..]),
        [b'0', b'b' | b'B', ..] => (2, &text[2..]),
        [b'0', b'o' | b'O', ..] => (8, &text[2..]),
        [b'0', _, ..] => (8, &text[1..]),
        _ => (10, text),
    };

    // The standard library would accept a sign here.
    if digits.starts_with(['+', '-']) {
        None
    } else {
        u64::from_str_radix(digits, radix).ok()
    }
}

/// Upstream also accepts `0b` before a sign.
pub(super) fn signed_binary(text: &str) -> Option<i64> {
    let digits = text.strip_prefix("0b")?;
    i64::from_str_radix(digits, 2).ok()
}

/// `1`, `1.`, `.5`, `1.5e-3`: digits, a point and an exponent. A number that is too large for a
/// float is none.
pub(super) fn float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = split_exponent(unsigned);
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));

    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let mantissa_is_one =
        all_digits(whole) && all_digits(fraction) && !(whole.is_empty() && fraction.is_empty());
    let exponent_is_one = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !digits.is_empty() && all_digits(digits)
    });

    if !mantissa_is_one || !exponent_is_one {
        return None;
    }

    text.parse().ok().filter(|number: &f64| number.is_finite())
}

fn split_exponent(text: &str) -> (&str, Option<&str>) {
    match text.find(['e', 'E']) {
        Some(offset) => (&text[..offset], Some(&text[offset + 1..])),
        None => (text, None),
    }
}

/// A float that begins with its point. Here underscores may only occur between digits.
pub(super) fn dotted_float(text: &str) -> Option<f64> {
    if !text.contains('_') {
        return float(text);
    }

    let between_digits = |(offset, byte): (usize, u8)| {
        let digit_at = |offset: Option<usize>| {
            offset
                .and_then(|offset| text.as_bytes().get(offset))
                .is_some_and(u8::is_ascii_digit)
        };
        byte != b'_' || (digit_at(offset.checked_sub(1)) && digit_at(Some(offset + 1)))
    };

    if !text.bytes().enumerate().all(between_digits) {
        return None;
    }

    float(&text.replace('_', ""))
}

/// A float as a YAML scalar: `1.5`, `1e+06`, `.inf`.
pub(super) fn print(number: f64) -> String {
    if number.is_nan() {
        ".nan".to_owned()
    } else if number.is_infinite() {
        if number > 0.0 { ".inf" } else { "-.inf" }.to_owned()
    } else {
        shortest(&format!("{number:e}"))
    }
}

/// As [`print`], with the digits of a 32-bit float, for keys.
#[expect(
    clippy::cast_possible_truncation,
    reason = "upstream prints keys with 32 bits"
)]
pub(super) fn print_key(number: f64) -> String {
    let narrow = number as f32;
    if narrow.is_finite() {
        shortest(&format!("{narrow:e}"))
    } else {
        print(f64::from(narrow))
    }
}

/// A float in error messages.
pub(super) fn print_in_message(number: f64) -> String {
    not_in_json(number).map_or_else(|| shortest(&format!("{number:e}")), str::to_owned)
}

/// The name of a number that JSON cannot hold.
pub(super) fn not_in_json(number: f64) -> Option<&'static str> {
    match number {
        f64::INFINITY => Some("+Inf"),
        f64::NEG_INFINITY => Some("-Inf"),
        _ if number.is_nan() => Some("NaN"),
        _ => None,
    }
}

/// The integer that a float without a fraction becomes in JSON: its shortest digits, padded with
/// zeros.
pub(super) fn whole(number: f64) -> Option<i64> {
    whole_digits(number)?.parse().ok()
}

/// A float as upstream prints it after converting through JSON: what looks like an integer becomes
/// one.
pub(super) fn print_from_json(number: f64) -> String {
    match whole_digits(number) {
        Some(digits) if digits.parse::<i64>().is_ok() || digits.parse::<u64>().is_ok() => digits,
        _ => print(number),
    }
}

fn whole_digits(number: f64) -> Option<String> {
    match number {
        0.0 => Some("0".to_owned()),
        _ if number.fract() == 0.0 && number.abs() < 1e21 => Some(number.to_string()),
        _ => None,
    }
}

/// From `-1.5e3` to `-1500`: the exponent is kept below 1e-4 and from 1e6 on, with two digits and a
/// sign.
fn shortest(scientific: &str) -> String {
    let (sign, unsigned) = if scientific.starts_with('-') {
        scientific.split_at(1)
    } else {
        ("", scientific)
    };
    let (mantissa, exponent) = unsigned.split_once('e').unwrap_or((unsigned, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits = mantissa.replace('.', "");

    if !(-4..6).contains(&exponent) {
        let exponent_sign = if exponent < 0 { '-' } else { '+' };
        return format!(
            "{sign}{mantissa}e{exponent_sign}{:02}",
            exponent.unsigned_abs()
        );
    }

    match usize::try_from(exponent + 1) {
        Ok(whole @ 1..) if digits.len() > whole => {
            format!("{sign}{}.{}", &digits[..whole], &digits[whole..])
        }
        Ok(whole @ 1..) => format!("{sign}{digits:0<whole$}"),
        _ => format!(
            "{sign}0.{}{digits}",
            "0".repeat(exponent.unsigned_abs() as usize - 1)
        ),
    }
}

/// Decodes a `!!binary` scalar. Invalid UTF-8 becomes replacement characters, one per octet.
pub(super) fn base64(text: &str) -> Option<String> {
    let encoded: String = text
        .chars()
        .filter(|character| !matches!(character, '\r' | '\n'))
        .collect();
    let octets = BASE64.decode(encoded).ok()?;
    let mut decoded = String::with_capacity(octets.len());
    for chunk in octets.utf8_chunks() {
        decoded.push_str(chunk.valid());
        decoded.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    Some(decoded)
}

/// Trailing bits after the last octet are ignored.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);
