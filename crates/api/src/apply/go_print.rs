//! Values as Go's `fmt` prints them: upstream's messages about a value of the wrong type show it so.

use std::fmt;

use crate::Value;
use crate::go_text::Quoted;

/// A value as `%v` prints it: `map[a:1 b:[x y]]`.
pub(super) struct Printed<'a>(pub(super) &'a Value);

impl fmt::Display for Printed<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Null => out.write_str("<nil>"),
            Value::Bool(flag) => write!(out, "{flag}"),
            Value::Int(number) => write!(out, "{number}"),
            Value::Float(number) => write!(out, "{}", Float(*number)),
            Value::String(text) => out.write_str(text),
            Value::Raw(raw) => out.write_str(raw.as_str()),
            Value::Array(items) => {
                out.write_str("[")?;
                for (place, item) in items.iter().enumerate() {
                    write!(out, "{}{}", if place > 0 { " " } else { "" }, Printed(item))?;
                }
                out.write_str("]")
            }
            Value::Object(map) => {
                out.write_str("map[")?;
                for (place, (name, value)) in map.iter().enumerate() {
                    write!(out, "{}{name}:{}", if place > 0 { " " } else { "" }, Printed(value))?;
                }
                out.write_str("]")
            }
        }
    }
}

/// A value as `%#v` prints it: `map[string]interface {}{"a":1}`.
pub(super) struct Syntax<'a>(pub(super) &'a Value);

impl fmt::Display for Syntax<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Null => out.write_str("interface {}(nil)"),
            Value::String(text) => write!(out, "{}", Quoted(text)),
            Value::Array(items) => {
                out.write_str("[]interface {}{")?;
                for (place, item) in items.iter().enumerate() {
                    write!(out, "{}{}", if place > 0 { ", " } else { "" }, Syntax(item))?;
                }
                out.write_str("}")
            }
            Value::Object(map) => {
                out.write_str("map[string]interface {}{")?;
                for (place, (name, value)) in map.iter().enumerate() {
                    let comma = if place > 0 { ", " } else { "" };
                    write!(out, "{comma}{}:{}", Quoted(name), Syntax(value))?;
                }
                out.write_str("}")
            }
            other => write!(out, "{}", Printed(other)),
        }
    }
}

/// The name of a value's type in Go, as `%T` prints it.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Float(_) => "float64",
        Value::String(_) | Value::Raw(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// A fractional number as `%v` prints it: an exponent of at least two digits, for the very small and very large.
pub(super) struct Float(pub(super) f64);

impl fmt::Display for Float {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.0.abs();
        if size == 0.0 || (1e-4..1e21).contains(&size) {
            return write!(out, "{}", self.0);
        }
        out.write_str(&with_exponent(self.0))
    }
}

/// A number with an exponent of at least two digits: `1e-07`, `1.5e+21`.
pub(super) fn with_exponent(number: f64) -> String {
    let text = format!("{number:e}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    match exponent.strip_prefix('-') {
        Some(exponent) => format!("{digits}e-{exponent:0>2}"),
        None => format!("{digits}e+{exponent:0>2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::json;

    #[test]
    fn values_print_as_go_prints_them() {
        let check = |text: &str, printed: &str, syntax: &str| {
            let value = json::parse(text.as_bytes()).unwrap();
            assert_eq!(
                (Printed(&value).to_string(), Syntax(&value).to_string()),
                (printed.into(), syntax.into())
            );
        };
        check("null", "<nil>", "interface {}(nil)");
        check("true", "true", "true");
        check("80", "80", "80");
        check("1.5", "1.5", "1.5");
        check("1e-7", "1e-07", "1e-07");
        check("1e300", "1e+300", "1e+300");
        check("100000.5", "100000.5", "100000.5");
        check(r#""a\"b""#, "a\"b", r#""a\"b""#);
        check(r#"[1,"x"]"#, "[1 x]", r#"[]interface {}{1, "x"}"#);
        check(
            r#"{"b":[],"a":{"c":1}}"#,
            "map[a:map[c:1] b:[]]",
            r#"map[string]interface {}{"a":map[string]interface {}{"c":1}, "b":[]interface {}{}}"#,
        );
    }
}
