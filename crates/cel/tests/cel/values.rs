//! Values of protocol buffers (`cel.expr.Value`), as the oracle's text and as an expression.

use crate::textproto::{Message, Node};

/// A value of the conformance tests.
pub(crate) enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(String),
    Bytes(Vec<u8>),
    List(Vec<Value>),
    Map(Vec<(Value, Value)>),
    Type(String),
    Timestamp(i64, u32),
    Duration(i128),
}

impl Value {
    /// `None` where it needs messages of protocol buffers.
    pub(crate) fn read(message: &Message) -> Option<Self> {
        let (name, node) = message.0.first()?;
        Some(match (name.as_str(), node) {
            ("null_value", _) => Self::Null,
            ("bool_value", Node::Word(word)) => Self::Bool(word == "true"),
            ("int64_value", Node::Word(word)) => Self::Int(integer(word).try_into().ok()?),
            ("uint64_value", Node::Word(word)) => Self::Uint(integer(word).try_into().ok()?),
            ("double_value", Node::Word(word)) => {
                Self::Double(word.trim_end_matches('f').parse().ok()?)
            }
            ("string_value", Node::Text(text)) => {
                Self::String(String::from_utf8(text.clone()).ok()?)
            }
            ("bytes_value", Node::Text(bytes)) => Self::Bytes(bytes.clone()),
            ("type_value", Node::Text(name)) => Self::Type(String::from_utf8(name.clone()).ok()?),
            ("list_value", Node::Message(list)) => Self::List(
                list.messages("values")
                    .map(Self::read)
                    .collect::<Option<_>>()?,
            ),
            ("map_value", Node::Message(map)) => Self::Map(
                map.messages("entries")
                    .map(|entry| {
                        let key = Self::read(entry.message("key")?)?;
                        Some((key, Self::read(entry.message("value")?)?))
                    })
                    .collect::<Option<_>>()?,
            ),
            ("object_value", Node::Message(any)) => Self::well_known(any)?,
            _ => return None,
        })
    }

    /// Messages that CEL knows as values of its own.
    fn well_known(any: &Message) -> Option<Self> {
        let (name, node) = any.0.first()?;
        let Node::Message(fields) = node else {
            return None;
        };
        let number = |field: &str| fields.text(field).map_or(0, |word| integer(&word));
        let name = name.strip_prefix("[type.googleapis.com/google.protobuf.")?;

        Some(match name.strip_suffix(']')? {
            "Timestamp" => Self::Timestamp(
                number("seconds").try_into().ok()?,
                number("nanos").try_into().ok()?,
            ),
            "Duration" => Self::Duration(number("seconds") * 1_000_000_000 + number("nanos")),
            "Int32Value" | "Int64Value" => Self::Int(number("value").try_into().ok()?),
            "UInt32Value" | "UInt64Value" => Self::Uint(number("value").try_into().ok()?),
            "StringValue" => Self::String(fields.text("value").unwrap_or_default()),
            "BoolValue" => Self::Bool(fields.text("value").as_deref() == Some("true")),
            "DoubleValue" | "FloatValue" => {
                Self::Double(fields.text("value").unwrap_or("0".into()).parse().ok()?)
            }
            _ => return None,
        })
    }

    /// As the oracle's `value`.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Null => "null".into(),
            Self::Bool(value) => value.to_string(),
            Self::Int(value) => value.to_string(),
            Self::Uint(value) => format!("{value}u"),
            Self::Double(value) => double(*value),
            Self::String(value) => quote(value),
            Self::Bytes(value) => format!("b\"{}\"", hex(value)),
            Self::List(values) => {
                let values: Vec<_> = values.iter().map(Self::text).collect();
                format!("[{}]", values.join(", "))
            }
            Self::Map(entries) => {
                let mut entries: Vec<_> = entries
                    .iter()
                    .map(|(key, value)| format!("{}: {}", key.text(), value.text()))
                    .collect();
                entries.sort();
                format!("{{{}}}", entries.join(", "))
            }
            Self::Type(name) => format!("type({name})"),
            Self::Timestamp(seconds, nanos) => format!("timestamp({seconds}.{nanos:09})"),
            Self::Duration(nanos) => format!("duration({nanos})"),
        }
    }

    /// An expression that evaluates to it.
    pub(crate) fn expression(&self) -> String {
        match self {
            Self::Null | Self::Bool(_) | Self::Uint(_) => self.text(),
            Self::Int(i64::MIN) => "(-9223372036854775807 - 1)".into(),
            Self::Int(value) => value.to_string(),
            Self::Double(value) if value.is_finite() => format!("{value:?}"),
            Self::Double(value) => format!("double('{}')", double(*value)),
            Self::String(value) => quote(value),
            Self::Bytes(value) => {
                let escapes: String = value.iter().map(|byte| format!("\\x{byte:02x}")).collect();
                format!("b'{escapes}'")
            }
            Self::List(values) => {
                let values: Vec<_> = values
                    .iter()
                    .map(|v| format!("dyn({})", v.expression()))
                    .collect();
                format!("[{}]", values.join(", "))
            }
            Self::Map(entries) => {
                let entries: Vec<_> = entries
                    .iter()
                    .map(|(k, v)| format!("dyn({}): dyn({})", k.expression(), v.expression()))
                    .collect();
                format!("{{{}}}", entries.join(", "))
            }
            Self::Type(name) => name.clone(),
            Self::Timestamp(seconds, _) => format!("timestamp({seconds})"),
            Self::Duration(nanos) => format!("duration('{nanos}ns')"),
        }
    }
}

fn integer(word: &str) -> i128 {
    match word.strip_prefix("0x") {
        Some(digits) => i128::from_str_radix(digits, 16).expect("hexadecimal digits"),
        None => word.parse().expect("digits"),
    }
}

pub(crate) fn double(value: f64) -> String {
    if value.is_nan() {
        return "NaN".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.into();
    }
    format!("{value:e}")
}

/// As JSON, with the escapes that Go writes.
pub(crate) fn quote(text: &str) -> String {
    serde_json::to_string(text)
        .expect("texts are JSON")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
