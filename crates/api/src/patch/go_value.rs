//! Values as upstream's messages print them: `map[image:x ports:[80 81]]`.

use std::fmt;

use super::opened;
use crate::Value;

/// A value as Go's `%v` shows it.
#[derive(Clone, Copy, Debug)]
pub struct GoValue<'a>(pub &'a Value);

impl fmt::Display for GoValue<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        print(self.0, Verb::Value, out)
    }
}

/// A value as Go's `%s` shows it: what is no text is marked.
#[derive(Clone, Copy)]
pub(super) struct GoString<'a>(pub(super) &'a Value);

impl fmt::Display for GoString<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        print(self.0, Verb::String, out)
    }
}

/// Several lists, one after the other, as Go prints a list of lists.
pub(super) fn lists(lists: &[&[Value]]) -> String {
    let all = lists.iter().map(|items| GoList(items).to_string()).collect::<Vec<_>>();
    format!("[{}]", all.join(" "))
}

/// A list as Go's `%v` shows it.
pub(super) struct GoList<'a>(pub(super) &'a [Value]);

impl fmt::Display for GoList<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        print_list(self.0, Verb::Value, out)
    }
}

/// The name of the type that upstream's decoder makes of a JSON value.
pub(super) fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Float(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => LIST_TYPE,
        Value::Object(_) => MAP_TYPE,
        Value::Raw(raw) => match raw.type_name() {
            "object" => MAP_TYPE,
            "array" => LIST_TYPE,
            "number" => "float64",
            "null" => "%!s(<nil>)",
            other => other,
        },
    }
}

pub(super) const MAP_TYPE: &str = "map[string]interface {}";
pub(super) const LIST_TYPE: &str = "[]interface {}";

#[derive(Clone, Copy, PartialEq)]
enum Verb {
    Value,
    String,
}

fn print(value: &Value, verb: Verb, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    match value {
        Value::String(text) => out.write_str(text),
        Value::Array(items) => print_list(items, verb, out),
        Value::Object(map) => {
            out.write_str("map[")?;
            for (place, (name, value)) in map.iter().enumerate() {
                let space = if place > 0 { " " } else { "" };
                write!(out, "{space}{name}:")?;
                print(value, verb, out)?;
            }
            out.write_str("]")
        }
        Value::Raw(_) => match opened(value).as_ref() {
            Value::Raw(raw) => out.write_str(raw.as_str()),
            tree => print(tree, verb, out),
        },
        Value::Null if verb == Verb::String => out.write_str("%!s(<nil>)"),
        Value::Null => out.write_str("<nil>"),
        scalar if verb == Verb::String => write!(out, "%!s({}={})", go_type(scalar), GoValue(scalar)),
        Value::Bool(flag) => write!(out, "{flag}"),
        Value::Int(number) => write!(out, "{number}"),
        Value::Float(number) => print_float(*number, out),
    }
}

fn print_list(items: &[Value], verb: Verb, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    out.write_str("[")?;
    for (place, item) in items.iter().enumerate() {
        if place > 0 {
            out.write_str(" ")?;
        }
        print(item, verb, out)?;
    }
    out.write_str("]")
}

/// The shortest digits; with an exponent of two digits or more below 1e-4 and from a million on.
fn print_float(number: f64, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let size = number.abs();
    if size == 0.0 || (1e-4..1e6).contains(&size) {
        return write!(out, "{number}");
    }
    let text = format!("{number:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |rest| ('-', rest));
    write!(out, "{digits}e{sign}{exponent:0>2}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::json;

    #[test]
    fn values_print_as_in_upstreams_messages() {
        let check = |text: &str, as_value: &str, as_string: &str| {
            let value = json::parse(text.as_bytes()).unwrap();
            assert_eq!(GoValue(&value).to_string(), as_value, "{text}");
            assert_eq!(GoString(&value).to_string(), as_string, "{text}");
        };
        check("null", "<nil>", "%!s(<nil>)");
        check("true", "true", "%!s(bool=true)");
        check("5", "5", "%!s(int64=5)");
        check("1.5", "1.5", "%!s(float64=1.5)");
        check("\"a b\"", "a b", "a b");
        check("[]", "[]", "[]");
        check("{}", "map[]", "map[]");
        check(
            r#"{"b":[1,"x"],"a":{"c":null}}"#,
            "map[a:map[c:<nil>] b:[1 x]]",
            "map[a:map[c:%!s(<nil>)] b:[%!s(int64=1) x]]",
        );
    }

    #[test]
    fn floats_print_as_in_upstreams_messages() {
        let check =
            |number: f64, expected: &str| assert_eq!(GoValue(&Value::Float(number)).to_string(), expected);
        check(0.0, "0");
        check(2.0, "2");
        check(-0.25, "-0.25");
        check(999999.5, "999999.5");
        check(1e6, "1e+06");
        check(1234567.5, "1.2345675e+06");
        check(1e-4, "0.0001");
        check(1e-7, "1e-07");
        check(1.5e300, "1.5e+300");
    }
}
