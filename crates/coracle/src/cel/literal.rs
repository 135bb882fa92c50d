//! Values as expressions that make them, so that the type of each part can be seen.

use coracle_api::Value as Tree;
use coracle_api::codec::json;
use coracle_cel::value::{Extra, Value, shown, type_text};

/// A value as text: `[1, 2u]`, `{"a": duration("90s")}`, `quantity("1Gi")`.
pub(super) fn literal(value: &Value<'_>) -> String {
    match value {
        Value::Null => "null".to_string(),
        Value::Uint(number) => format!("{number}u"),
        Value::Double(number) => double(*number),
        Value::String(text) => quoted(text),
        Value::Bytes(bytes) => bytes_literal(bytes),
        Value::Timestamp(_) => format!("timestamp({})", quoted_json(value)),
        Value::Duration(_) => format!("duration({})", quoted_json(value)),
        Value::List(list) => {
            let items = list.iter().map(|item| match item {
                Ok(item) => literal(&item),
                Err(error) => error.to_string(),
            });
            format!("[{}]", items.collect::<Vec<_>>().join(", "))
        }
        Value::Map(map) => {
            let entries = (0..map.len()).filter_map(|index| map.entry(index));
            let entries = entries.map(|(key, value)| match value {
                Ok(value) => format!("{}: {}", literal(&key), literal(&value)),
                Err(error) => format!("{}: {error}", literal(&key)),
            });
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        Value::Object(object) => {
            let fields = object
                .fields
                .iter()
                .map(|(name, value)| format!("{}: {}", &**name, literal(value)));
            format!(
                "{}{{{}}}",
                &*object.name,
                fields.collect::<Vec<_>>().join(", ")
            )
        }
        Value::Optional(None) => "optional.none()".to_string(),
        Value::Optional(Some(value)) => format!("optional.of({})", literal(value)),
        Value::Extra(extra) => extra_literal(extra),
        Value::Opaque(tree) => json::to_string(tree),
        Value::Failed(error) => error.to_string(),
        Value::Bool(_) | Value::Int(_) | Value::Type(_) => shown(value),
    }
}

fn extra_literal(extra: &Extra) -> String {
    let function = match extra {
        Extra::Ip(_) => "ip",
        Extra::Cidr(_) => "cidr",
        Extra::Url(_) => "url",
        Extra::Quantity(..) => "quantity",
        Extra::Semver(_) => "semver",
        Extra::Decision(verdict) => {
            let decision = if verdict.allowed { "allowed" } else { "denied" };
            return format!("{} ({decision})", extra.type_name());
        }
        other => return other.type_name().to_string(),
    };
    format!("{function}({})", quoted(&extra.to_string()))
}

fn quoted(text: &str) -> String {
    json::to_string(&Tree::string(text))
}

/// What JSON writes as text.
fn quoted_json(value: &Value<'_>) -> String {
    match value.to_json() {
        Ok(text) => json::to_string(&text),
        Err(_) => quoted(type_text(value)),
    }
}

/// A whole number has a fraction, too, so that it is not taken for an int.
fn double(number: f64) -> String {
    match number.is_finite() {
        true => format!("{number:?}"),
        false => format!("double(\"{}\")", shown(&Value::Double(number))),
    }
}

fn bytes_literal(bytes: &[u8]) -> String {
    use std::fmt::Write as _;

    let mut text = String::from("b\"");
    for byte in bytes {
        match byte {
            b'"' | b'\\' => {
                text.push('\\');
                text.push(char::from(*byte));
            }
            b' '..=b'~' => text.push(char::from(*byte)),
            other => write!(text, "\\x{other:02x}").expect("a string takes all"),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use coracle_cel::env::Env;
    use coracle_cel::eval::Budget;
    use coracle_cel::program::{Activation, Program};

    use super::literal;

    /// What is printed makes the same value again.
    #[test]
    fn values_are_written_as_expressions_that_make_them() {
        let check = |text: &str| {
            let evaluate = |text: &str| {
                let checked = Env::base().compile(text).unwrap();
                let program = Program::new(&checked).unwrap();
                let outcome = program.eval(&Activation::default(), Budget::default());
                literal(&outcome.result.unwrap())
            };
            assert_eq!(evaluate(text), text);
        };

        check(r#"["a", "b\"c\\d"]"#);
        check("[1u, 2u]");
        check("{\"a\": [true, false]}");
        check("1.0");
        check("1.5e300");
        check("double(\"NaN\")");
        check(r#"b"a\"\\\x00\xff""#);
        check(r#"duration("90.5s")"#);
        check(r#"timestamp("2024-01-01T00:00:00Z")"#);
        check(r#"quantity("1Gi")"#);
        check(r#"cidr("10.0.0.0/8")"#);
        check(r#"ip("::1")"#);
        check(r#"url("https://a.b/c")"#);
        check(r#"semver("1.2.3")"#);
        check("optional.of(1)");
        check("optional.none()");
        check("null");
        check("int");
    }
}
