//! A number, or a name or percentage: `targetPort: http`, `maxSurge: 25%`.

use std::fmt;

use crate::go_text::{NumberError, Quoted, parse_int};
use crate::value::{Text, Value};

/// A 32-bit number or a text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum IntOrString {
    Int(i32),
    String(Text),
}

/// How a fraction of a percentage is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    Up,
    Down,
}

/// Why a value cannot be scaled, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScaleError {
    #[error("invalid value for IntOrString: invalid type: string is not a percentage")]
    NotAPercentage,
    #[error(
        "invalid value for IntOrString: invalid value {}: strconv.Atoi: parsing {}: {cause}",
        Quoted(value), Quoted(value.trim_end_matches('%'))
    )]
    Number { value: Text, cause: NumberError },
}

impl IntOrString {
    /// The value of a field; `None` if it is neither.
    pub fn from_value(value: &Value) -> Option<IntOrString> {
        match value {
            Value::Int(number) => i32::try_from(*number).ok().map(IntOrString::Int),
            Value::String(text) => Some(IntOrString::String(text.clone())),
            _ => None,
        }
    }

    /// A command-line value: a number if it parses as one.
    pub fn parse(text: &str) -> IntOrString {
        let number = parse_int(text)
            .ok()
            .and_then(|number| i32::try_from(number).ok());
        number.map_or_else(|| IntOrString::String(Text::new(text)), IntOrString::Int)
    }

    /// The number, or the percentage of `total`.
    pub fn scaled(&self, total: i32, rounding: Rounding) -> Result<i64, ScaleError> {
        let text = match self {
            IntOrString::Int(number) => return Ok(i64::from(*number)),
            IntOrString::String(text) => text,
        };
        let digits = text.strip_suffix('%').ok_or(ScaleError::NotAPercentage)?;
        let percent = parse_int(digits).map_err(|cause| ScaleError::Number {
            value: text.clone(),
            cause,
        })?;
        Ok(percentage(percent, total, rounding))
    }
}

fn percentage(percent: i64, total: i32, rounding: Rounding) -> i64 {
    let hundredths = i128::from(percent) * i128::from(total);
    let scaled = match rounding {
        Rounding::Down => hundredths.div_euclid(100),
        Rounding::Up => -(-hundredths).div_euclid(100),
    };
    let limit = if scaled < 0 { i64::MIN } else { i64::MAX };
    i64::try_from(scaled).unwrap_or(limit)
}

impl fmt::Display for IntOrString {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IntOrString::Int(number) => write!(out, "{number}"),
            IntOrString::String(text) => out.write_str(text),
        }
    }
}

impl From<IntOrString> for Value {
    fn from(value: IntOrString) -> Value {
        match value {
            IntOrString::Int(number) => Value::from(number),
            IntOrString::String(text) => Value::String(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, total: i32, up: Result<i64, &str>, down: Result<i64, &str>) {
        let value = IntOrString::parse(text);
        let scaled = |rounding| {
            value
                .scaled(total, rounding)
                .map_err(|error| error.to_string())
        };

        assert_eq!(
            scaled(Rounding::Up),
            up.map_err(str::to_owned),
            "{text} of {total}, up"
        );

        assert_eq!(
            scaled(Rounding::Down),
            down.map_err(str::to_owned),
            "{text} of {total}, down"
        );
    }

    #[test]
    fn numbers_stay_and_percentages_are_scaled() {
        check("3", 10, Ok(3), Ok(3));
        check("-3", 10, Ok(-3), Ok(-3));
        check("25%", 10, Ok(3), Ok(2));
        check("25%", 4, Ok(1), Ok(1));
        check("0%", 7, Ok(0), Ok(0));
        check("150%", 3, Ok(5), Ok(4));
        check("-10%", 7, Ok(0), Ok(-1));
        check("1%", 0, Ok(0), Ok(0));
    }

    #[test]
    fn invalid_percentages_are_refused_in_upstreams_words() {
        let no_percentage =
            "invalid value for IntOrString: invalid type: string is not a percentage";
        check("abc", 10, Err(no_percentage), Err(no_percentage));
        let no_number = "invalid value for IntOrString: invalid value \"a%\": strconv.Atoi: parsing \"a\": invalid syntax";
        check("a%", 10, Err(no_number), Err(no_number));
        let empty = "invalid value for IntOrString: invalid value \"%\": strconv.Atoi: parsing \"\": invalid syntax";
        check("%", 10, Err(empty), Err(empty));
    }

    #[test]
    fn a_text_that_is_a_number_is_a_number() {
        assert_eq!(IntOrString::parse("80"), IntOrString::Int(80));
        assert_eq!(
            IntOrString::parse("2147483648"),
            IntOrString::String("2147483648".into())
        );
        assert_eq!(
            IntOrString::from_value(&Value::from("http")),
            Some(IntOrString::String("http".into()))
        );
        assert_eq!(Value::from(IntOrString::Int(80)), Value::Int(80));
    }
}
