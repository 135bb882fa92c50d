//! Settings of one value, read as Go's `strconv` and upstream's flag types do.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use coracle_api::Value;
use coracle_api::go_text::{NumberError, Quoted};
use coracle_api::time::{self, parse_duration};
use ipnet::IpNet;

use super::{Element, Field, mismatch};

/// Makes types of one text fields: themselves, and options of them.
macro_rules! fields {
    ($($type:ty),*) => {$(
        impl Field for $type {
            fn kind(&self) -> &'static str {
                <$type>::KIND
            }

            fn set(&mut self, text: &str) -> Result<(), String> {
                *self = <$type>::parse(text)?;
                Ok(())
            }

            fn read(&mut self, value: &Value) -> Result<(), String> {
                *self = <$type>::from_value(value)?;
                Ok(())
            }

            fn value(&self) -> Value {
                self.to_value()
            }
        }
    )*};
}

fields!(
    bool, i32, i64, u16, u32, u64, usize, f64, String, Duration, IpAddr, SocketAddr, IpNet, PathBuf
);

impl<E: Element> Field for Option<E> {
    fn kind(&self) -> &'static str {
        E::KIND
    }

    fn set(&mut self, text: &str) -> Result<(), String> {
        *self = match text {
            "" => None,
            text => Some(E::parse(text)?),
        };
        Ok(())
    }

    fn read(&mut self, value: &Value) -> Result<(), String> {
        *self = Some(E::from_value(value)?);
        Ok(())
    }

    fn value(&self) -> Value {
        self.as_ref().map_or(Value::Null, E::to_value)
    }
}

impl Element for bool {
    const KIND: &'static str = crate::command_line::SWITCH;

    fn parse(text: &str) -> Result<bool, String> {
        match text {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
            _ => Err(wrong("ParseBool", text, NumberError::Syntax)),
        }
    }

    fn from_value(value: &Value) -> Result<bool, String> {
        value.as_bool().ok_or_else(|| mismatch("a bool", value))
    }

    fn to_value(&self) -> Value {
        Value::Bool(*self)
    }
}

fn wrong(function: &str, text: &str, cause: NumberError) -> String {
    format!("strconv.{function}: parsing {}: {cause}", Quoted(text))
}

/// An integer as Go's `ParseInt` reads it with base 0: `0x10`, `0b11`, `0o17`, `017`, `1_000`.
fn integer(text: &str) -> Result<i128, NumberError> {
    let (is_negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };

    let lower = digits.to_ascii_lowercase();
    let (base, digits, has_prefix) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, &lower[2..], true),
        [b'0', b'b', ..] => (2, &lower[2..], true),
        [b'0', b'o', ..] => (8, &lower[2..], true),
        [b'0', _, ..] => (8, &lower[1..], true),
        _ => (10, lower.as_str(), false),
    };

    // An underscore stands between digits, or after the prefix.
    let is_separated = !digits.ends_with('_')
        && !digits.contains("__")
        && (has_prefix || !digits.starts_with('_'));
    let plain = digits.replace('_', "");
    let is_number = !plain.is_empty() && plain.chars().all(|digit| digit.is_digit(base));
    if !is_separated || !is_number {
        return Err(NumberError::Syntax);
    }

    let number = i128::from_str_radix(&plain, base).map_err(|_| NumberError::Range)?;
    Ok(if is_negative { -number } else { number })
}

macro_rules! integers {
    ($($type:ty: $kind:literal, $function:literal;)*) => {$(
        impl Element for $type {
            const KIND: &'static str = $kind;
            const LIST: &'static str = "ints";

            fn parse(text: &str) -> Result<$type, String> {
                let number = integer(text).map_err(|cause| wrong($function, text, cause))?;
                let range = || wrong($function, text, NumberError::Range);
                <$type>::try_from(number).map_err(|_| range())
            }

            fn from_value(value: &Value) -> Result<$type, String> {
                let number = value.as_int().ok_or_else(|| mismatch("an integer", value))?;
                <$type>::try_from(number).map_err(|_| format!("{number} is out of range"))
            }

            fn to_value(&self) -> Value {
                let number = i64::try_from(*self);
                number.map_or_else(|_| Value::from(self.to_string()), Value::Int)
            }
        }
    )*};
}

integers! {
    i32: "int32", "ParseInt";
    i64: "int", "ParseInt";
    u16: "port", "ParseUint";
    u32: "uint32", "ParseUint";
    u64: "uint64", "ParseUint";
    usize: "uint", "ParseUint";
}

impl Element for f64 {
    const KIND: &'static str = "float";

    fn parse(text: &str) -> Result<f64, String> {
        let number = text.parse().ok().filter(|number: &f64| number.is_finite());
        number.ok_or_else(|| wrong("ParseFloat", text, NumberError::Syntax))
    }

    fn from_value(value: &Value) -> Result<f64, String> {
        match value {
            Value::Float(number) => Ok(*number),
            Value::Int(number) => f64::parse(&number.to_string()),
            _ => Err(mismatch("a number", value)),
        }
    }

    fn to_value(&self) -> Value {
        Value::Float(*self)
    }
}

impl Element for String {
    const KIND: &'static str = "string";

    fn parse(text: &str) -> Result<String, String> {
        Ok(text.to_string())
    }

    fn to_value(&self) -> Value {
        Value::string(self)
    }
}

impl Element for Duration {
    const KIND: &'static str = "duration";

    fn parse(text: &str) -> Result<Duration, String> {
        let duration = parse_duration(text).map_err(|error| error.to_string())?;
        duration
            .to_std()
            .ok_or_else(|| String::from("must not be negative"))
    }

    fn to_value(&self) -> Value {
        Value::from(time::Duration::from(*self).to_string())
    }
}

impl Element for IpAddr {
    const KIND: &'static str = "ip";
    const LIST: &'static str = "ips";

    fn parse(text: &str) -> Result<IpAddr, String> {
        text.trim()
            .parse()
            .map_err(|_| format!("failed to parse IP: {}", Quoted(text)))
    }

    fn to_value(&self) -> Value {
        Value::from(self.to_string())
    }
}

impl Element for SocketAddr {
    const KIND: &'static str = "ip:port";
    const LIST: &'static str = "ip:port,…";

    fn parse(text: &str) -> Result<SocketAddr, String> {
        text.parse()
            .map_err(|_| format!("{} is not a valid IP:port", Quoted(text)))
    }

    fn to_value(&self) -> Value {
        Value::from(self.to_string())
    }
}

impl Element for IpNet {
    const KIND: &'static str = "cidr";
    const LIST: &'static str = "cidrs";

    fn parse(text: &str) -> Result<IpNet, String> {
        text.trim()
            .parse()
            .map_err(|_| format!("invalid CIDR address: {text}"))
    }

    fn to_value(&self) -> Value {
        Value::from(self.to_string())
    }
}

impl Element for PathBuf {
    const KIND: &'static str = "file";
    const LIST: &'static str = "files";

    fn parse(text: &str) -> Result<PathBuf, String> {
        Ok(PathBuf::from(text))
    }

    fn to_value(&self) -> Value {
        Value::from(self.display().to_string())
    }
}
