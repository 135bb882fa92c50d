//! Conversions.

use coracle_api::go_text::{parse_int, parse_uint};

use crate::declare::NativeResult;
use crate::eval::{Context, EvalError};
use crate::value::{GoFloat, Moment, TWO_TO_63, TWO_TO_64, Text, Value, type_name};

fn refused(value: &Value<'_>, to: &'static str) -> EvalError {
    EvalError::Conversion {
        from: type_name(value).into(),
        to,
    }
}

pub(in crate::library) fn to_bool<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
    match args[0].as_str() {
        Some("1" | "t" | "T" | "true" | "TRUE" | "True") => Ok(Value::Bool(true)),
        Some("0" | "f" | "F" | "false" | "FALSE" | "False") => Ok(Value::Bool(false)),
        _ => Err(refused(&args[0], "bool")),
    }
}

pub(in crate::library) fn to_bytes<'a>(
    context: &mut Context<'_>,
    args: &[Value<'a>],
) -> NativeResult<'a> {
    match &args[0] {
        Value::String(text) => {
            context.work.allocate(text.len())?;
            Ok(Value::Bytes(text.as_bytes().into()))
        }
        other => Err(refused(other, "bytes")),
    }
}

pub(in crate::library) fn to_double<'a>(
    _: &mut Context<'_>,
    args: &[Value<'a>],
) -> NativeResult<'a> {
    match &args[0] {
        Value::Int(number) => Ok(Value::Double(*number as f64)),
        Value::Uint(number) => Ok(Value::Double(*number as f64)),
        Value::String(text) => match parse_float(text) {
            Some(number) => Ok(Value::Double(number)),
            None => Err(refused(&args[0], "double")),
        },
        other => Err(refused(other, "double")),
    }
}

/// A number as Go reads it: digits that are too large for a number are refused.
fn parse_float(text: &str) -> Option<f64> {
    let number: f64 = text.parse().ok()?;
    let written = text.trim_start_matches(['+', '-']);
    let named = written.eq_ignore_ascii_case("inf") || written.eq_ignore_ascii_case("infinity");
    (number.is_finite() || number.is_nan() || named).then_some(number)
}

pub(in crate::library) fn to_duration<'a>(
    _: &mut Context<'_>,
    args: &[Value<'a>],
) -> NativeResult<'a> {
    match &args[0] {
        Value::String(text) => match text.parse() {
            Ok(span) => Ok(Value::Duration(span)),
            Err(_) => Err(refused(&args[0], "google.protobuf.Duration")),
        },
        other => Err(refused(other, "google.protobuf.Duration")),
    }
}

pub(in crate::library) fn to_int<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
    let overflow = EvalError::IntegerOverflow;
    Ok(Value::Int(match &args[0] {
        Value::Double(number) => whole(*number).ok_or(overflow)?,
        Value::Uint(number) => i64::try_from(*number).map_err(|_| overflow)?,
        Value::Duration(span) => span.as_nanos(),
        Value::Timestamp(at) => at.seconds,
        Value::String(text) => parse_int(text).map_err(|_| refused(&args[0], "int"))?,
        other => return Err(refused(other, "int")),
    }))
}

#[expect(clippy::cast_possible_truncation, reason = "the range is tested")]
fn whole(number: f64) -> Option<i64> {
    let fits = number > -TWO_TO_63 && number < TWO_TO_63;
    fits.then_some(number as i64)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is tested"
)]
fn whole_unsigned(number: f64) -> Option<u64> {
    let fits = (0.0..TWO_TO_64).contains(&number);
    fits.then_some(number as u64)
}

pub(in crate::library) fn to_uint<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
    let overflow = EvalError::UnsignedOverflow;
    Ok(Value::Uint(match &args[0] {
        Value::Uint(number) => *number,
        Value::Double(number) => whole_unsigned(*number).ok_or(overflow)?,
        Value::Int(number) => u64::try_from(*number).map_err(|_| overflow)?,
        Value::String(text) => parse_uint(text).map_err(|_| refused(&args[0], "uint"))?,
        other => return Err(refused(other, "uint")),
    }))
}

pub(in crate::library) fn to_timestamp<'a>(
    _: &mut Context<'_>,
    args: &[Value<'a>],
) -> NativeResult<'a> {
    match &args[0] {
        Value::Int(seconds) => Moment {
            seconds: *seconds,
            nanos: 0,
            offset: 0,
        }
        .checked()
        .map(Value::Timestamp),
        Value::String(text) => match Moment::parse(text) {
            Ok(at) => at.checked().map(Value::Timestamp),
            Err(_) => Err(refused(&args[0], "google.protobuf.Timestamp")),
        },
        other => Err(refused(other, "google.protobuf.Timestamp")),
    }
}

pub(in crate::library) fn to_string<'a>(
    context: &mut Context<'_>,
    args: &[Value<'a>],
) -> NativeResult<'a> {
    if let Value::Bytes(bytes) = &args[0] {
        context.work.allocate(bytes.len())?;
    }
    text_of(&args[0]).map(|text| Value::String(Text::from(text)))
}

/// `string(x)`.
pub(crate) fn text_of(value: &Value<'_>) -> Result<String, EvalError> {
    Ok(match value {
        Value::Bool(flag) => flag.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Uint(number) => number.to_string(),
        Value::Double(number) => GoFloat(*number).to_string(),
        Value::String(text) | Value::Type(text) => (**text).to_owned(),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => {
                return Err(EvalError::failed(
                    "invalid UTF-8 in bytes, cannot convert to string",
                ));
            }
        },
        Value::Timestamp(at) => at.rfc3339(),
        Value::Duration(span) => {
            let nanos = span.as_nanos();
            let seconds = (nanos / 1_000_000_000) as f64 + (nanos % 1_000_000_000) as f64 / 1e9;
            format!("{seconds}s")
        }
        other => return Err(refused(other, "string")),
    })
}
