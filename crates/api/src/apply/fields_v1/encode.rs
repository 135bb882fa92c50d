//! Encodes a field set as its FieldsV1 text.

use crate::apply::element::Element;
use crate::apply::set::Set;
use crate::codec::json;
use crate::go_text::Exponential;
use crate::value::RawJson;
use crate::{Map, Value};

/// The set as JSON text.
pub fn encode(set: &Set) -> RawJson {
    let mut writer = Writer {
        out: String::with_capacity(1024),
        name: String::new(),
    };
    writer.set(set, false);
    RawJson::trusted(&writer.out)
}

struct Writer {
    out: String,
    /// The text of a path element, before it is quoted.
    name: String,
}

impl Writer {
    fn set(&mut self, set: &Set, itself: bool) {
        self.out.push('{');

        if itself && !set.is_empty() {
            self.out.push_str(r#"".":{}"#);
        }

        for (place, node) in set.nodes.iter().enumerate() {
            if place > 0 || itself {
                self.out.push(',');
            }
            self.element(&node.element);
            self.out.push(':');
            self.set(&node.below, node.member);
        }

        self.out.push('}');
    }

    fn element(&mut self, element: &Element) {
        self.name.clear();
        self.name.push_str(match element {
            Element::Field(_) => "f:",
            Element::Key(_) => "k:",
            Element::Value(_) => "v:",
            Element::Index(_) => "i:",
        });

        match element {
            Element::Field(name) => self.name.push_str(name),
            Element::Key(fields) => {
                self.name.push('{');

                for (place, (name, value)) in fields.iter().enumerate() {
                    if place > 0 {
                        self.name.push(',');
                    }
                    quote(name, &mut self.name);
                    self.name.push(':');
                    write_value(value, &mut self.name);
                }

                self.name.push('}');
            }
            Element::Value(value) => write_value(value, &mut self.name),
            Element::Index(index) => self.name.push_str(&index.to_string()),
        }

        quote(&self.name, &mut self.out);
    }
}

/// Quotes text. Unlike in objects, only what must be escaped is, and control characters by number.
fn quote(text: &str, out: &mut String) {
    out.push('"');
    let mut rest = text;
    while let Some(at) = rest
        .bytes()
        .position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20))
    {
        let (plain, special) = rest.split_at(at);
        out.push_str(plain);

        match special.as_bytes()[0] {
            byte @ (b'"' | b'\\') => out.extend(['\\', char::from(byte)]),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            byte => out.push_str(&format!("\\u{byte:04x}")),
        }

        rest = &special[1..];
    }

    out.push_str(rest);
    out.push('"');
}

/// A key's value. Its strings are HTML-escaped, unlike the names beside them.
fn write_value(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => quote_html_safe(text, out),
        Value::Float(number) => out.push_str(&float(*number)),
        Value::Int(number) => out.push_str(&number.to_string()),
        Value::Array(items) => {
            out.push('[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                write_value(item, out);
            }
            out.push(']');
        }
        Value::Object(map) => write_map(map, out),
        other => out.push_str(&json::to_string(other)),
    }
}

fn write_map(map: &Map, out: &mut String) {
    out.push('{');
    for (place, (name, value)) in map.iter().enumerate() {
        if place > 0 {
            out.push(',');
        }
        quote_html_safe(name, out);
        out.push(':');
        write_value(value, out);
    }
    out.push('}');
}

fn quote_html_safe(text: &str, out: &mut String) {
    if !text.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return quote(text, out);
    }

    let start = out.len();
    quote(text, out);
    let escaped = |character: char| matches!(character, '<' | '>' | '&' | '\u{2028}' | '\u{2029}');

    let quoted = out.split_off(start);
    for character in quoted.chars() {
        match character {
            character if escaped(character) => {
                out.push_str(&format!("\\u{:04x}", u32::from(character)))
            }
            character => out.push(character),
        }
    }
}

/// A float in the notation of `f:…` objects; the exponent has at least two digits.
fn float(number: f64) -> String {
    let size = number.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        return Exponential(number).to_string();
    }
    json::to_string(&Value::Float(number))
}
