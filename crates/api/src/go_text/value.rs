//! Values as Go's `fmt` prints them in upstream's messages.
//!
//! A raw value is printed as what its text describes.

use std::borrow::Cow;
use std::fmt;

use super::{Float, Quoted};
use crate::Value;
use crate::codec::json;

/// A value as `%v` prints it: `map[image:x ports:[80 81]]`.
#[derive(Clone, Copy, Debug)]
pub struct GoValue<'a>(pub &'a Value);

impl fmt::Display for GoValue<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        print(self.0, Verb::Value, out)
    }
}

/// A value as `%#v` prints it: `map[string]interface {}{"a":1}`.
#[derive(Clone, Copy, Debug)]
pub struct GoSyntax<'a>(pub &'a Value);

impl fmt::Display for GoSyntax<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        print(self.0, Verb::Syntax, out)
    }
}

/// A value as `%s` prints it: non-strings are marked.
#[derive(Clone, Copy, Debug)]
pub struct GoString<'a>(pub &'a Value);

impl fmt::Display for GoString<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        print(self.0, Verb::String, out)
    }
}

/// A list as `%v` prints it.
#[derive(Clone, Copy, Debug)]
pub struct GoList<'a>(pub &'a [Value]);

impl fmt::Display for GoList<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        print_list(self.0, Verb::Value, out)
    }
}

/// The Go type that upstream's decoders create for a value, as `%T` prints it.
pub fn go_type(value: &Value) -> &'static str {
    match opened(value).as_ref() {
        Value::Null => NIL,
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Float(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => LIST_TYPE,
        Value::Object(_) => MAP_TYPE,
        // Text too deep for a tree: its first character decides.
        Value::Raw(raw) if raw.type_name() == "array" => LIST_TYPE,
        Value::Raw(_) => MAP_TYPE,
    }
}

pub const MAP_TYPE: &str = "map[string]interface {}";
pub const LIST_TYPE: &str = "[]interface {}";
const NIL: &str = "<nil>";

#[derive(Clone, Copy, PartialEq)]
enum Verb {
    /// `%v`
    Value,
    /// `%#v`
    Syntax,
    /// `%s`
    String,
}

fn print(value: &Value, verb: Verb, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    match (value, verb) {
        (Value::Raw(_), _) => match opened(value).as_ref() {
            Value::Raw(raw) => out.write_str(raw.as_str()),
            tree => print(tree, verb, out),
        },
        (Value::Array(items), _) => print_list(items, verb, out),
        (Value::Object(map), _) => {
            let signs = Delimiters::of(verb, ["map", MAP_TYPE]);
            signs.open(out)?;

            for (index, (name, value)) in map.iter().enumerate() {
                signs.between(index, out)?;
                match verb {
                    Verb::Syntax => write!(out, "{}:", Quoted(name))?,
                    _ => write!(out, "{name}:")?,
                }
                print(value, verb, out)?;
            }

            signs.close(out)
        }
        (Value::String(text), Verb::Syntax) => write!(out, "{}", Quoted(text)),
        (Value::String(text), _) => out.write_str(text),
        (Value::Null, Verb::Value) => out.write_str(NIL),
        (Value::Null, Verb::Syntax) => out.write_str("interface {}(nil)"),
        (Value::Null, Verb::String) => write!(out, "%!s({NIL})"),
        (scalar, Verb::String) => write!(out, "%!s({}={})", go_type(scalar), GoValue(scalar)),
        (Value::Bool(flag), _) => write!(out, "{flag}"),
        (Value::Int(number), _) => write!(out, "{number}"),
        (Value::Float(number), _) => write!(out, "{}", Float(*number)),
    }
}

fn print_list(items: &[Value], verb: Verb, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let signs = Delimiters::of(verb, ["", LIST_TYPE]);
    signs.open(out)?;
    for (index, item) in items.iter().enumerate() {
        signs.between(index, out)?;
        print(item, verb, out)?;
    }
    signs.close(out)
}

/// The delimiters and separators of a list or map: `map[a:1 b:2]`, `[]interface {}{1, 2}`.
struct Delimiters {
    start: &'static str,
    open: &'static str,
    between: &'static str,
    close: &'static str,
}

impl Delimiters {
    fn of(verb: Verb, [plain, syntax]: [&'static str; 2]) -> Delimiters {
        match verb {
            Verb::Syntax => Delimiters {
                start: syntax,
                open: "{",
                between: ", ",
                close: "}",
            },
            _ => Delimiters {
                start: plain,
                open: "[",
                between: " ",
                close: "]",
            },
        }
    }

    fn open(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.start)?;
        out.write_str(self.open)
    }

    fn between(&self, index: usize, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(if index > 0 { self.between } else { "" })
    }

    fn close(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.close)
    }
}

/// The value itself, or the tree of a raw value. Text too deep for a tree stays raw.
fn opened(value: &Value) -> Cow<'_, Value> {
    match value {
        Value::Raw(raw) => {
            json::parse(raw.as_str().as_bytes()).map_or(Cow::Borrowed(value), Cow::Owned)
        }
        _ => Cow::Borrowed(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_print_as_go_prints_them() {
        let check = |text: &str, [value, syntax, string, of]: [&str; 4]| {
            let tree = json::parse(text.as_bytes()).unwrap();
            let raw = Value::Raw(json::raw(text.as_bytes()).unwrap());
            for found in [&tree, &raw] {
                assert_eq!(GoValue(found).to_string(), value, "{text}");
                assert_eq!(GoSyntax(found).to_string(), syntax, "{text}");
                assert_eq!(GoString(found).to_string(), string, "{text}");
                assert_eq!(go_type(found), of, "{text}");
            }
        };

        check(
            "null",
            ["<nil>", "interface {}(nil)", "%!s(<nil>)", "<nil>"],
        );

        check("true", ["true", "true", "%!s(bool=true)", "bool"]);
        check("80", ["80", "80", "%!s(int64=80)", "int64"]);

        check("1.5", ["1.5", "1.5", "%!s(float64=1.5)", "float64"]);
        check(
            "1234567.5",
            [
                "1.2345675e+06",
                "1.2345675e+06",
                "%!s(float64=1.2345675e+06)",
                "float64",
            ],
        );

        check("1e-7", ["1e-07", "1e-07", "%!s(float64=1e-07)", "float64"]);
        check(r#""a\"b""#, ["a\"b", r#""a\"b""#, "a\"b", "string"]);
        check("[]", ["[]", "[]interface {}{}", "[]", LIST_TYPE]);
        check(
            "{}",
            ["map[]", "map[string]interface {}{}", "map[]", MAP_TYPE],
        );

        check(
            r#"{"b":[1,"x"],"a":{"c":null}}"#,
            [
                "map[a:map[c:<nil>] b:[1 x]]",
                r#"map[string]interface {}{"a":map[string]interface {}{"c":interface {}(nil)}, "b":[]interface {}{1, "x"}}"#,
                "map[a:map[c:%!s(<nil>)] b:[%!s(int64=1) x]]",
                MAP_TYPE,
            ],
        );
    }

    #[test]
    fn text_too_deep_for_a_tree_prints_unchanged() {
        for (open, close, of) in [("[", "]", LIST_TYPE), ("{\"a\":", "}", MAP_TYPE)] {
            let text = format!("{}1{}", open.repeat(1000), close.repeat(1000));
            let raw = Value::Raw(json::raw(text.as_bytes()).unwrap());
            assert_eq!((GoValue(&raw).to_string(), go_type(&raw)), (text, of));
        }
    }
}
