//! Validates one scalar against its type.
//!
//! The decoders pass what they read (a boolean, a string, a numeric literal) and get the value as
//! the tree stores it, or an error in upstream's words. Valid values keep their notation (`"1000m"`
//! is not yet `"1"`): only `codec::canonical` rewrites them.

use crate::Value;
use crate::catalog::Shape;
use crate::quantity::Quantity;
use crate::time::{self, MicroTime, Time};

/// Why a scalar is not of its type.
#[derive(Debug, PartialEq)]
pub(super) enum Refusal {
    /// A complete message.
    Text(String),
    /// The rest of `cannot unmarshal <this> into …`: the decoder knows the target type.
    Type(String),
}

type Validated = Option<Result<Value, Refusal>>;

/// The error for a value that is no quantity.
pub(super) const NOT_A_QUANTITY: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// `None`: the type does not take a boolean.
pub(super) fn from_bool(flag: bool, shape: Shape) -> Validated {
    match shape {
        Shape::Bool => Some(Ok(Value::Bool(flag))),
        Shape::Quantity => Some(Err(Refusal::Text(NOT_A_QUANTITY.to_string()))),
        _ => None,
    }
}

/// `None`: the type does not take a string. A valid string is kept unchanged.
pub(super) fn check_text(text: &str, shape: Shape) -> Option<Result<(), String>> {
    let refusal = match shape {
        Shape::String | Shape::IntOrString => None,
        Shape::Bytes => base64(text)
            .err()
            .map(|at| format!("illegal base64 data at input byte {at}")),
        Shape::Quantity => text
            .parse::<Quantity>()
            .err()
            .map(|error| error.to_string()),
        Shape::Time => Time::parse(text).err().map(|error| error.to_string()),
        Shape::MicroTime => MicroTime::parse(text).err().map(|error| error.to_string()),
        Shape::Duration => time::parse_duration(text)
            .err()
            .map(|error| error.to_string()),
        _ => return None,
    };

    Some(refusal.map_or(Ok(()), Err))
}

/// `None`: the type does not take a number.
pub(super) fn from_number(literal: &str, shape: Shape) -> Validated {
    let not_this = || Err(Refusal::Type(format!("number {literal}")));
    Some(match shape {
        Shape::Int64 => literal.parse().map(Value::Int).or_else(|_| not_this()),
        Shape::Int32 | Shape::IntOrString => literal
            .parse::<i32>()
            .map(|number| Value::Int(i64::from(number)))
            .or_else(|_| not_this()),
        Shape::Double => match literal.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Value::Float(number)),
            _ => not_this(),
        },
        Shape::Quantity => match literal.parse::<Quantity>() {
            Ok(_) => Ok(Value::string(literal)),
            Err(error) => Err(Refusal::Text(error.to_string())),
        },
        _ => return None,
    })
}

/// A number without a type: an integer if it is written as one and fits, else a float. `None`: too
/// large for either.
pub(super) fn untyped_number(literal: &str) -> Option<Value> {
    if let Ok(number) = literal.parse() {
        return Some(Value::Int(number));
    }
    literal
        .parse::<f64>()
        .ok()
        .filter(|number| number.is_finite())
        .map(Value::Float)
}

/// Decodes base64, ignoring line breaks. The error is the offset that upstream's decoder reports.
pub(super) fn base64(text: &str) -> Result<Vec<u8>, usize> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let input = text.as_bytes();

    let mut at = 0;
    let next = |at: &mut usize| -> Option<(usize, u8)> {
        while let Some(byte) = input.get(*at) {
            *at += 1;
            if !matches!(byte, b'\n' | b'\r') {
                return Some((*at - 1, *byte));
            }
        }
        None
    };

    loop {
        let mut quantum = [0u8; 4];
        let mut have = 0;
        while have < 4 {
            let Some((offset, byte)) = next(&mut at) else {
                return if have == 0 { Ok(bytes) } else { Err(at - have) };
            };
            if let Some(bits) = sextet(byte) {
                quantum[have] = bits;
                have += 1;
                continue;
            }

            if byte != b'=' || have < 2 {
                return Err(offset);
            }

            if have == 2 {
                match next(&mut at) {
                    Some((_, b'=')) => {}
                    Some((offset, _)) => return Err(offset),
                    None => return Err(input.len()),
                }
            }

            push_quantum(quantum, have - 1, &mut bytes);

            // Nothing may follow the padding.
            return match next(&mut at) {
                None => Ok(bytes),
                Some((offset, _)) => Err(offset),
            };
        }

        push_quantum(quantum, 3, &mut bytes);
    }
}

fn push_quantum(quantum: [u8; 4], count: usize, bytes: &mut Vec<u8>) {
    let [a, b, c, d] = quantum;
    let whole = [a << 2 | b >> 4, b << 4 | c >> 2, c << 6 | d];
    bytes.extend_from_slice(&whole[..count]);
}

fn sextet(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_refused_at_the_byte_upstream_names() {
        let check = |text: &str, expected: Result<&[u8], usize>| {
            assert_eq!(
                base64(text).as_deref().map_err(|at| *at),
                expected,
                "{text:?}"
            );
        };

        check("", Ok(b""));
        check("YQ==", Ok(b"a"));
        check("YWI=", Ok(b"ab"));
        check("YWJj", Ok(b"abc"));
        check("YW\nJj\r\n", Ok(b"abc"));
        check("YQ", Err(0));
        check("YWJjYQ", Err(4));

        check("!!", Err(0));
        check("YQ=", Err(3));
        check("YQ==YQ==", Err(4));
        check("=", Err(0));
        check("YWJ!", Err(3));
    }

    #[test]
    fn an_untyped_number_is_an_integer_if_written_as_one() {
        assert_eq!(untyped_number("5"), Some(Value::Int(5)));
        assert_eq!(
            untyped_number("-9223372036854775808"),
            Some(Value::Int(i64::MIN))
        );
        assert_eq!(
            untyped_number("9223372036854775808"),
            Some(Value::Float(9223372036854775808.0))
        );
        assert_eq!(untyped_number("1.0"), Some(Value::Float(1.0)));
        assert_eq!(untyped_number("1e999"), None);
    }
}
