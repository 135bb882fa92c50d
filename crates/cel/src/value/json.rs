//! Values as JSON, as protocol buffers write them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use coracle_api::codec::json::MAX_TREE_DEPTH;
use coracle_api::{Map as Members, Text, Value as Tree};

use super::{Value, lossless_int, type_name};
use crate::library::text_of;

/// The largest integer up to which floating-point numbers have no gaps: larger ones are written as
/// texts.
const LARGEST_EXACT: u64 = (1 << 53) - 1;

impl Value<'_> {
    /// The value as JSON.
    ///
    /// # Errors
    /// JSON has no such value.
    pub fn to_json(&self) -> Result<Tree, String> {
        self.json_at(0)
    }

    fn json_at(&self, depth: usize) -> Result<Tree, String> {
        if depth > MAX_TREE_DEPTH {
            return Err("exceeded max depth".to_owned());
        }
        Ok(match self {
            Value::Null => Tree::Null,
            Value::Bool(flag) => Tree::Bool(*flag),
            Value::Int(number) if number.unsigned_abs() > LARGEST_EXACT => {
                Tree::string(number.to_string())
            }
            Value::Int(number) => Tree::Int(*number),
            Value::Uint(number) => match i64::try_from(*number) {
                Ok(small) if *number <= LARGEST_EXACT => Tree::Int(small),
                _ => Tree::string(number.to_string()),
            },
            Value::Double(number) => double(*number)?,
            Value::String(text) => Tree::string(&**text),
            Value::Bytes(bytes) => Tree::string(STANDARD.encode(bytes)),
            Value::Timestamp(_) | Value::Duration(_) => {
                Tree::string(text_of(self).map_err(|error| error.to_string())?)
            }
            Value::List(list) => {
                let items = list.iter().map(|item| {
                    let item = item.map_err(|error| error.to_string())?;
                    item.json_at(depth + 1)
                });
                Tree::Array(items.collect::<Result<_, String>>()?)
            }
            Value::Map(map) => {
                let mut members = Vec::with_capacity(map.len());
                for (key, value) in (0..map.len()).filter_map(|index| map.entry(index)) {
                    let name = key.as_str().ok_or_else(|| unsupported(&key))?;
                    let value = value.map_err(|error| error.to_string())?;
                    members.push((Text::new(name), value.json_at(depth + 1)?));
                }
                Tree::Object(Members::from_members(members))
            }
            Value::Object(object) => {
                let mut members = Vec::with_capacity(object.fields.len());
                for (name, value) in &object.fields {
                    members.push((Text::new(&**name), value.json_at(depth + 1)?));
                }
                Tree::Object(Members::from_members(members))
            }
            Value::Optional(None) => return Err("optional.none() dereference".to_owned()),
            Value::Optional(Some(inner)) => inner.json_at(depth + 1)?,
            Value::Failed(error) => return Err(error.to_string()),
            Value::Type(_) | Value::Extra(_) | Value::Opaque(_) => return Err(unsupported(self)),
        })
    }
}

/// Whole numbers are written without a fraction.
fn double(number: f64) -> Result<Tree, String> {
    if !number.is_finite() {
        return Err(format!("no support for infinite or NaN numbers: {number}"));
    }
    Ok(match lossless_int(number) {
        Some(whole) => Tree::Int(whole),
        None => Tree::Float(number),
    })
}

fn unsupported(value: &Value<'_>) -> String {
    format!("type conversion error from '{}' to JSON", type_name(value))
}

#[cfg(test)]
mod tests {
    use crate::env::Env;
    use crate::eval::Budget;
    use crate::program::{Activation, Program};
    use coracle_api::codec::json;

    #[test]
    fn values_become_json_as_protocol_buffers_write_them() {
        let check = |text: &str, expected: Result<&str, &str>| {
            let program = Program::new(&Env::base().compile(text).unwrap()).unwrap();
            let outcome = program.eval(&Activation::default(), Budget::default());
            let found = outcome.result.unwrap().to_json();
            let found = found.map(|tree| json::to_string(&tree));
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{text}");
        };

        check("[1, 2]", Ok("[1,2]"));
        check(
            "{'b': [null], 'a': [null]}",
            Ok(r#"{"a":[null],"b":[null]}"#),
        );
        check("9007199254740991", Ok("9007199254740991"));
        check("9007199254740992", Ok(r#""9007199254740992""#));
        check("-9007199254740992", Ok(r#""-9007199254740992""#));

        check("7u", Ok("7"));
        check("2.0", Ok("2"));
        check("2.5", Ok("2.5"));
        check("b'abc'", Ok(r#""YWJj""#));
        check("duration('90m')", Ok(r#""5400s""#));

        check(
            "timestamp('2024-01-01T00:00:00.5Z')",
            Ok(r#""2024-01-01T00:00:00.5Z""#),
        );
        check("optional.of(1)", Ok("1"));
        check("optional.none()", Err("optional.none() dereference"));
        check(
            "quantity('1')",
            Err("type conversion error from 'kubernetes.Quantity' to JSON"),
        );
        check("{1: 2}", Err("type conversion error from 'int' to JSON"));
    }
}
