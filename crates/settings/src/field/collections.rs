//! Lists and maps.

use std::collections::BTreeMap;

use coracle_api::go_text::Quoted;
use coracle_api::{Text, Value};

use super::{Element, Field, mismatch};

/// A list: `a,b`. The flag again adds to it.
impl<E: Element> Field for Vec<E> {
    fn kind(&self) -> &'static str {
        E::LIST
    }

    fn set(&mut self, text: &str) -> Result<(), String> {
        self.clear();
        self.add(text)
    }

    fn add(&mut self, text: &str) -> Result<(), String> {
        for part in comma_separated(text)? {
            self.push(E::parse(&part)?);
        }
        Ok(())
    }

    fn read(&mut self, value: &Value) -> Result<(), String> {
        *self = match value {
            Value::Array(items) => items.iter().map(E::from_value).collect::<Result<_, _>>()?,
            // Upstream has fields of one text with several ranges.
            Value::String(text) => return self.set(text),
            _ => return Err(mismatch("a list", value)),
        };
        Ok(())
    }

    fn value(&self) -> Value {
        Value::Array(self.iter().map(E::to_value).collect())
    }
}

/// A list with one element per flag, in which commas mean nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Each(pub Vec<String>);

impl Field for Each {
    fn kind(&self) -> &'static str {
        "stringArray"
    }

    fn set(&mut self, text: &str) -> Result<(), String> {
        self.0.clear();
        self.add(text)
    }

    fn add(&mut self, text: &str) -> Result<(), String> {
        self.0.push(text.to_string());
        Ok(())
    }

    fn read(&mut self, value: &Value) -> Result<(), String> {
        self.0.read(value)
    }

    fn value(&self) -> Value {
        self.0.value()
    }
}

/// A map: `a=b,c=d`. The flag again adds to it.
impl<E: Element> Field for BTreeMap<String, E> {
    fn kind(&self) -> &'static str {
        "mapStringString"
    }

    fn set(&mut self, text: &str) -> Result<(), String> {
        self.clear();
        self.add(text)
    }

    fn add(&mut self, text: &str) -> Result<(), String> {
        for pair in text.split(',').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair
                .split_once('=')
                .ok_or_else(|| format!("malformed pair, expect string={}", E::KIND))?;

            let (name, value) = (name.trim(), value.trim());
            let value = E::parse(value)
                .map_err(|why| format!("invalid value of {name}: {value}, err: {why}"))?;
            self.insert(name.to_string(), value);
        }

        Ok(())
    }

    fn read(&mut self, value: &Value) -> Result<(), String> {
        let map = value
            .as_object()
            .ok_or_else(|| mismatch("a mapping", value))?;
        let entry = |(name, value): (&str, &Value)| Ok((name.to_string(), E::from_value(value)?));
        *self = map.iter().map(entry).collect::<Result<_, String>>()?;
        Ok(())
    }

    fn value(&self) -> Value {
        let entry = |(name, value): (&String, &E)| (Text::new(name), value.to_value());
        Value::Object(self.iter().map(entry).collect())
    }
}

/// A map of texts, whose values may be missing: `a=b,c`. The flag again adds to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pairs(pub BTreeMap<String, String>);

impl Field for Pairs {
    fn kind(&self) -> &'static str {
        "mapStringString"
    }

    fn set(&mut self, text: &str) -> Result<(), String> {
        self.0.clear();
        self.add(text)
    }

    fn add(&mut self, text: &str) -> Result<(), String> {
        for pair in text.split(',').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            self.0
                .insert(name.trim().to_string(), value.trim().to_string());
        }
        Ok(())
    }

    fn read(&mut self, value: &Value) -> Result<(), String> {
        self.0.read(value)
    }

    fn value(&self) -> Value {
        self.0.value()
    }
}

/// The fields of one line of CSV, as upstream reads lists: a field in quotes may contain commas.
fn comma_separated(text: &str) -> Result<Vec<String>, String> {
    if text.is_empty() {
        return Ok(Vec::new());
    }

    let mut fields = Vec::new();
    let mut rest = text;
    loop {
        let Some(quoted) = rest.strip_prefix('"') else {
            let (field, more) = match rest.split_once(',') {
                Some((field, more)) => (field, Some(more)),
                None => (rest, None),
            };

            if field.contains('"') {
                return Err(format!("bare \" in non-quoted field: {}", Quoted(text)));
            }

            fields.push(field.to_string());
            match more {
                Some(more) => rest = more,
                None => return Ok(fields),
            }
            continue;
        };

        let (field, more) = quoted_field(quoted)
            .ok_or_else(|| format!("extraneous or missing \" in quoted field: {}", Quoted(text)))?;
        fields.push(field);
        match more {
            Some(more) => rest = more,
            None => return Ok(fields),
        }
    }
}

/// The field that ends at the next single quote, and what follows its comma.
fn quoted_field(text: &str) -> Option<(String, Option<&str>)> {
    let mut field = String::new();
    let mut rest = text;
    loop {
        let (part, more) = rest.split_once('"')?;
        field.push_str(part);
        match more.as_bytes().first() {
            None => return Some((field, None)),
            Some(b',') => return Some((field, Some(&more[1..]))),
            Some(b'"') => {
                field.push('"');
                rest = &more[1..];
            }
            Some(_) => return None,
        }
    }
}
