//! `format`: clauses as `printf` has them, with English numbers.

use coracle_api::go_text::Quoted;

use crate::declare::NativeResult;
use crate::eval::{Context, EvalError};
use crate::library::args::{list, text};
use crate::library::standard::text_of;
use crate::value::{List, Map, Text, Value, type_name};

/// Decimals where a clause does not say how many.
const DECIMALS: usize = 6;

pub(super) fn format<'a>(context: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
    let (template, values) = (text(args, 0)?, list(args, 1)?);
    context.work.allocate(template.len())?;
    let mut out = String::with_capacity(template.len());
    let mut next = 0;
    let mut rest = template;

    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(behind) = rest.strip_prefix('%') {
            out.push('%');
            rest = behind;
            continue;
        }
        if next >= values.len() {
            return Err(EvalError::failed(format!("index {next} out of range")));
        }
        if rest.is_empty() {
            return Err(EvalError::failed("unexpected end of string"));
        }
        let (clause, behind) = Clause::parse(rest).map_err(|why| {
            EvalError::failed(format!("could not parse formatting clause: {why}"))
        })?;
        rest = behind;
        let written = clause.write(context, &values.get(next)?)?;
        context.work.allocate(written.len())?;
        out.push_str(&written);
        next += 1;
    }

    out.push_str(rest);
    Ok(Value::String(Text::from(out)))
}

struct Clause {
    verb: char,
    precision: Option<usize>,
}

impl Clause {
    fn parse(text: &str) -> Result<(Clause, &str), String> {
        let mut precision = None;
        let mut rest = text;
        if let Some(behind) = text.strip_prefix('.') {
            let digits = behind.bytes().take_while(u8::is_ascii_digit).count();
            let (digits, behind) = behind.split_at(digits);
            if behind.is_empty() {
                return Err(
                    "error while parsing precision: could not find end of precision specifier"
                        .to_owned(),
                );
            }
            let converting = "error while parsing precision: error while converting precision to integer: strconv.Atoi: parsing";
            precision = Some(match digits.parse::<i64>() {
                Ok(number) => usize::try_from(number).unwrap_or(usize::MAX),
                Err(_) if digits.is_empty() => {
                    return Err(format!("{converting} \"\": invalid syntax"));
                }
                Err(_) => {
                    return Err(format!(
                        "{converting} {}: value out of range",
                        Quoted(digits)
                    ));
                }
            });
            rest = behind;
        }

        // Upstream looks at bytes: it names the first of a longer character.
        let byte = rest.as_bytes().first().copied().unwrap_or(0);
        match byte {
            b's' | b'd' | b'f' | b'e' | b'b' | b'x' | b'X' | b'o' => Ok((
                Clause {
                    verb: char::from(byte),
                    precision,
                },
                &rest[1..],
            )),
            other => Err(format!(
                "unrecognized formatting clause \"{}\"",
                char::from(other)
            )),
        }
    }

    fn write(&self, context: &mut Context<'_>, value: &Value<'_>) -> Result<String, EvalError> {
        let written = match self.verb {
            's' => return plain(context, value).map_err(during),
            'd' => decimal(value),
            'f' => fixed(context, value, self.precision.unwrap_or(DECIMALS))?,
            'e' => scientific(context, value, self.precision.unwrap_or(DECIMALS))?,
            'b' => binary(value),
            'o' => octal(value),
            verb => hexadecimal(context, value, verb == 'X')?,
        };
        written.map_err(|why| during(EvalError::failed(why)))
    }
}

fn during(error: EvalError) -> EvalError {
    if error.is_final() {
        return error;
    }
    EvalError::failed(format!("error during formatting: {error}"))
}

fn only(clause: &str, types: &str, value: &Value<'_>) -> String {
    format!(
        "{clause} clause can only be used on {types}, was given {}",
        type_name(value)
    )
}

fn plain(context: &mut Context<'_>, value: &Value<'_>) -> Result<String, EvalError> {
    context.work.spend(1)?;
    match value {
        Value::List(list) => list_text(context, list),
        Value::Map(map) => map_text(context, map),
        Value::Null => Ok("null".to_owned()),
        Value::Int(_)
        | Value::Uint(_)
        | Value::Double(_)
        | Value::Bool(_)
        | Value::String(_)
        | Value::Timestamp(_)
        | Value::Bytes(_)
        | Value::Duration(_)
        | Value::Type(_) => {
            context.work.allocate(match value {
                Value::String(text) => text.len(),
                Value::Bytes(bytes) => bytes.len(),
                _ => 32,
            })?;
            text_of(value).map_err(|error| {
                EvalError::failed(format!(
                    "could not convert argument {} to string",
                    Quoted(&error.to_string())
                ))
            })
        }
        other => Err(EvalError::failed(only(
            "string",
            "strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps",
            other,
        ))),
    }
}

/// A value within a list or a map.
fn member(context: &mut Context<'_>, value: &Value<'_>) -> Result<String, EvalError> {
    Ok(match value {
        Value::String(text) => {
            context.work.allocate(2 * text.len())?;
            Quoted(text).to_string()
        }
        Value::Bytes(_) => format!("b{}", Quoted(&plain(context, value)?)),
        Value::Double(number) => {
            context.work.allocate(512)?;
            if number.is_finite() {
                format!("{number:.DECIMALS$}")
            } else {
                Quoted(&crate::value::GoFloat(*number).to_string()).to_string()
            }
        }
        Value::Timestamp(_) => format!("timestamp({})", Quoted(&text_of(value)?)),
        Value::Duration(_) => format!("duration({})", Quoted(&text_of(value)?)),
        Value::Int(_)
        | Value::Uint(_)
        | Value::Bool(_)
        | Value::Null
        | Value::Type(_)
        | Value::List(_)
        | Value::Map(_) => plain(context, value)?,
        other => {
            return Err(EvalError::failed(format!(
                "no formatting function for {}",
                type_name(other)
            )));
        }
    })
}

fn list_text(context: &mut Context<'_>, list: &List<'_>) -> Result<String, EvalError> {
    let mut out = "[".to_owned();
    for (index, item) in list.iter().enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        let written = member(context, &item?)?;
        context.work.allocate(written.len() + 2)?;
        out.push_str(&written);
    }
    out.push(']');
    Ok(out)
}

fn map_text(context: &mut Context<'_>, map: &Map<'_>) -> Result<String, EvalError> {
    let mut pairs = Vec::new();
    for index in 0..map.len() {
        let Some((key, value)) = map.entry(index) else {
            continue;
        };
        let name = match &key {
            Value::String(_) | Value::Bool(_) | Value::Int(_) | Value::Uint(_) => {
                member(context, &key)?
            }
            other => {
                return Err(EvalError::failed(format!(
                    "no formatting function for map key of type {}",
                    type_name(other)
                )));
            }
        };
        let written = member(context, &value?)?;
        context.work.allocate(name.len() + written.len() + 64)?;
        pairs.push((name, written));
    }

    pairs.sort_by(|a, b| a.0.cmp(&b.0));
    let pairs: Vec<String> = pairs
        .into_iter()
        .map(|(name, written)| format!("{name}:{written}"))
        .collect();
    Ok(format!("{{{}}}", pairs.join(", ")))
}

fn decimal(value: &Value<'_>) -> Result<String, String> {
    match value {
        Value::Int(number) => Ok(number.to_string()),
        Value::Uint(number) => Ok(number.to_string()),
        other => Err(only("decimal", "integers", other)),
    }
}

/// The number of a floating-point clause.
fn floating(clause: &str, value: &Value<'_>) -> Result<f64, String> {
    match value {
        Value::Double(number) => Ok(*number),
        Value::String(text) if &**text == "NaN" => Ok(f64::NAN),
        Value::String(text) if &**text == "Infinity" => Ok(f64::INFINITY),
        Value::String(text) if &**text == "-Infinity" => Ok(f64::NEG_INFINITY),
        other => Err(only(clause, "doubles", other)),
    }
}

fn special(number: f64) -> Option<String> {
    if number.is_nan() {
        Some("NaN".to_owned())
    } else if number.is_infinite() {
        Some(if number > 0.0 { "∞" } else { "-∞" }.to_owned())
    } else {
        None
    }
}

/// `1,234.500000`
fn fixed(
    context: &mut Context<'_>,
    value: &Value<'_>,
    decimals: usize,
) -> Result<Result<String, String>, EvalError> {
    let number = match floating("fixed-point", value) {
        Ok(number) => number,
        Err(why) => return Ok(Err(why)),
    };
    if let Some(text) = special(number) {
        return Ok(Ok(text));
    }

    context.work.allocate(decimals.saturating_add(512))?;
    // Beyond this a double has only zeros.
    let shown = decimals.min(1100);
    let text = format!("{number:.shown$}");
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.as_str()),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut out = sign.to_owned();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if decimals > 0 {
        out.push('.');
        out.push_str(fraction);
        out.extend(std::iter::repeat_n('0', decimals - shown));
    }
    Ok(Ok(out))
}

/// `1.500000×10⁰³`. What is written as the precision is the width: upstream's slip.
fn scientific(
    context: &mut Context<'_>,
    value: &Value<'_>,
    width: usize,
) -> Result<Result<String, String>, EvalError> {
    let number = match floating("scientific", value) {
        Ok(number) => number,
        Err(why) => return Ok(Err(why)),
    };
    context.work.allocate(width.saturating_add(64))?;

    let text = special(number).unwrap_or_else(|| {
        let text = format!("{number:.DECIMALS$e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(exponent) => ("\u{207b}", exponent),
            None => ("", exponent),
        };
        let raised: String = format!("{exponent:0>2}").chars().map(superscript).collect();
        format!("{digits}\u{202f}×\u{202f}10{sign}{raised}").replace('\u{202f}', "")
    });

    let length = text.chars().count();
    let padding = " ".repeat(width.saturating_sub(length));
    Ok(Ok(padding + &text))
}

fn superscript(digit: char) -> char {
    match digit {
        '0' => '⁰',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        _ => '⁹',
    }
}

fn binary(value: &Value<'_>) -> Result<String, String> {
    match value {
        Value::Int(number) => Ok(signed(*number, |size| format!("{size:b}"))),
        Value::Uint(number) => Ok(format!("{number:b}")),
        Value::Bool(flag) => Ok(u8::from(*flag).to_string()),
        other => Err(only("binary", "integers and bools", other)),
    }
}

fn octal(value: &Value<'_>) -> Result<String, String> {
    match value {
        Value::Int(number) => Ok(signed(*number, |size| format!("{size:o}"))),
        Value::Uint(number) => Ok(format!("{number:o}")),
        other => Err(only("octal", "integers", other)),
    }
}

fn signed(number: i64, digits: impl Fn(u64) -> String) -> String {
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}{}", digits(number.unsigned_abs()))
}

fn hexadecimal(
    context: &mut Context<'_>,
    value: &Value<'_>,
    upper: bool,
) -> Result<Result<String, String>, EvalError> {
    let bytes = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    context.work.allocate(match value {
        Value::String(text) => 2 * text.len(),
        Value::Bytes(bytes) => 2 * bytes.len(),
        _ => 32,
    })?;
    let text: String = match value {
        Value::Int(number) => signed(*number, |size| format!("{size:x}")),
        Value::Uint(number) => format!("{number:x}"),
        Value::String(text) => bytes(text.as_bytes()),
        Value::Bytes(all) => bytes(all),
        other => {
            return Ok(Err(only(
                "hex",
                "integers, byte buffers, and strings",
                other,
            )));
        }
    };
    Ok(Ok(if upper { text.to_uppercase() } else { text }))
}
