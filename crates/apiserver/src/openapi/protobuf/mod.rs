//! Documents as protobuf, which kubectl and client-go request, since it is parsed faster than JSON.
//!
//! The messages are those of gnostic. A table ([`v2`], [`v3`]) maps the JSON members of each
//! message to field numbers; the encoder walks a tree with such a table. What JSON leaves open
//! (extensions, defaults, enums) is encoded as YAML text.

pub(super) mod v2;
pub(super) mod v3;

use coracle_api::codec::yaml;
use coracle_api::{Map, Value};

/// What a JSON value becomes.
pub(super) enum Message {
    /// Members by name; those that begin with `x-` go under `extensions`, if there is such a
    /// number.
    Fields {
        fields: &'static [(&'static str, u32, Field)],
        extensions: u32,
    },
    /// One of several messages, whichever fits.
    OneOf(fn(&Value) -> (u32, &'static Message)),
    /// An object with any members: a list of names and values under that number.
    Named(u32, &'static Message),
    /// A text or a list of texts, under 1.
    Texts,
    /// A schema, as the only one of a list.
    Single(&'static Message),
    /// A number, flag or text under 1, 2 or 3; nothing for anything else.
    Literal,
}

pub(super) enum Field {
    Text,
    Flag,
    Texts,
    One(&'static Message),
    Many(&'static Message),
    Yaml,
    Yamls,
}

pub(super) fn encode(message: &Message, value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    match message {
        Message::Fields { fields, extensions } => {
            let Some(map) = value.as_object() else {
                return out;
            };
            for (name, number, field) in *fields {
                if let Some(value) = map.get(name) {
                    put_field(&mut out, *number, field, value);
                }
            }

            for (name, value) in map
                .iter()
                .filter(|(name, _)| *extensions > 0 && name.starts_with("x-"))
            {
                put_bytes(&mut out, *extensions, &named(name, &yaml_any(value)));
            }
        }
        Message::OneOf(choose) => {
            let (number, message) = choose(value);
            put_bytes(&mut out, number, &encode(message, value));
        }
        Message::Named(number, of) => {
            for (name, value) in value.as_object().into_iter().flat_map(Map::iter) {
                put_named(&mut out, *number, name, of, value);
            }
        }
        Message::Texts => put_texts(&mut out, 1, value),
        Message::Single(of) => put_bytes(&mut out, 1, &encode(of, value)),
        Message::Literal => match value {
            Value::Int(number) => put_double(&mut out, 1, *number as f64),
            Value::Float(number) => put_double(&mut out, 1, *number),
            Value::Bool(flag) => put_varint(&mut out, 2, u64::from(*flag)),
            Value::String(text) => put_bytes(&mut out, 3, text.as_bytes()),
            _ => {}
        },
    }

    out
}

/// A member of an object whose members have any names.
pub(super) fn put_named(out: &mut Vec<u8>, number: u32, name: &str, of: &Message, value: &Value) {
    put_bytes(out, number, &named(name, &encode(of, value)));
}

pub(super) fn put_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    varint(out, u64::from(number) << 3 | 2);
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn put_field(out: &mut Vec<u8>, number: u32, field: &Field, value: &Value) {
    match field {
        Field::Text => match value.as_str() {
            Some(text) if !text.is_empty() => put_bytes(out, number, text.as_bytes()),
            _ => {}
        },
        Field::Flag => {
            if value.as_bool() == Some(true) {
                put_varint(out, number, 1);
            }
        }
        Field::Texts => put_texts(out, number, value),
        Field::One(of) => put_bytes(out, number, &encode(of, value)),
        Field::Many(of) => {
            for item in value.as_array().unwrap_or_default() {
                put_bytes(out, number, &encode(of, item));
            }
        }
        Field::Yaml => put_bytes(out, number, &yaml_any(value)),
        Field::Yamls => {
            for item in value.as_array().unwrap_or_default() {
                put_bytes(out, number, &yaml_any(item));
            }
        }
    }
}

fn put_texts(out: &mut Vec<u8>, number: u32, value: &Value) {
    let texts = value.as_array().unwrap_or(std::slice::from_ref(value));
    for text in texts.iter().filter_map(Value::as_str) {
        put_bytes(out, number, text.as_bytes());
    }
}

/// Name and value.
fn named(name: &str, value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(name.len() + value.len() + 8);
    put_bytes(&mut out, 1, name.as_bytes());
    put_bytes(&mut out, 2, value);
    out
}

/// Any value, as its YAML text.
fn yaml_any(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    put_bytes(&mut out, 2, yaml::print(value).as_bytes());
    out
}

fn put_varint(out: &mut Vec<u8>, number: u32, value: u64) {
    varint(out, u64::from(number) << 3);
    varint(out, value);
}

fn put_double(out: &mut Vec<u8>, number: u32, value: f64) {
    varint(out, u64::from(number) << 3 | 1);
    out.extend_from_slice(&value.to_le_bytes());
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use coracle_api::codec::json;

    fn check(message: &Message, text: &str, expected: &[u8]) {
        let value = json::parse(text.as_bytes()).unwrap();
        assert_eq!(encode(message, &value), expected, "{text}");
    }

    #[test]
    fn members_go_under_their_numbers_and_extensions_as_yaml() {
        check(
            &v2::INFO,
            r#"{"title":"K","version":"1"}"#,
            b"\x0a\x01K\x12\x011",
        );
        check(
            &v2::SCHEMA,
            r#"{"type":"string","x-a":"b"}"#,
            b"\xb2\x01\x08\x0a\x06string\xfa\x01\x0b\x0a\x03x-a\x12\x04\x12\x02b\n",
        );
    }

    #[test]
    fn a_reference_is_distinguished_from_a_schema() {
        check(
            &v3::SCHEMA_OR_REFERENCE,
            r##"{"$ref":"#/a"}"##,
            b"\x12\x05\x0a\x03#/a",
        );
        check(
            &v3::SCHEMA_OR_REFERENCE,
            r#"{"type":"string"}"#,
            b"\x0a\x09\xca\x01\x06string",
        );
    }

    #[test]
    fn a_default_that_is_an_object_is_there_and_empty() {
        check(&v3::SCHEMA, r#"{"default":{}}"#, b"\x8a\x02\x00");
        check(&v3::SCHEMA, r#"{"default":""}"#, b"\x8a\x02\x02\x1a\x00");
        check(
            &v3::SCHEMA,
            r#"{"default":0}"#,
            b"\x8a\x02\x09\x09\0\0\0\0\0\0\0\0",
        );
    }
}
