//! One path element: a field, an element of a list by its key or value, or an index.

use std::cmp::Ordering;
use std::fmt;

use super::order;
use crate::go_text::{GoValue, Quoted};
use crate::{Text, Value};

/// A step from a value to one of its children. The order of the variants is the order in which
/// FieldsV1 lists them.
#[derive(Clone, Debug)]
pub enum Element {
    /// A field of a struct, or a key of a map.
    Field(Text),
    /// The element of a list whose key fields have these values, sorted by name.
    Key(Vec<(Text, Value)>),
    /// The element of a set with this value.
    Value(Value),
    /// The element at an index of a list. Such elements are never owned, but FieldsV1 can express
    /// them.
    Index(i64),
}

impl Element {
    pub fn field(name: &str) -> Element {
        Element::Field(Text::new(name))
    }

    /// A key of several fields, in any order.
    pub fn key(mut fields: Vec<(Text, Value)>) -> Element {
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        Element::Key(fields)
    }
}

impl Ord for Element {
    fn cmp(&self, other: &Element) -> Ordering {
        match (self, other) {
            (Element::Field(a), Element::Field(b)) => a.cmp(b),
            (Element::Key(a), Element::Key(b)) => {
                let pairs = a.iter().zip(b);
                let difference = pairs
                    .map(|(a, b)| a.0.cmp(&b.0).then_with(|| order::compare(&a.1, &b.1)))
                    .find(|order| order.is_ne());
                difference.unwrap_or(a.len().cmp(&b.len()))
            }
            (Element::Value(a), Element::Value(b)) => order::compare(a, b),
            (Element::Index(a), Element::Index(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl Element {
    fn rank(&self) -> u8 {
        match self {
            Element::Field(_) => 0,
            Element::Key(_) => 1,
            Element::Value(_) => 2,
            Element::Index(_) => 3,
        }
    }
}

impl PartialOrd for Element {
    fn partial_cmp(&self, other: &Element) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Element {
    fn eq(&self, other: &Element) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Element {}

/// As conflict messages print it: `.spec`, `[name="a"]`, `[="x"]`, `[0]`.
impl fmt::Display for Element {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Element::Field(name) => write!(out, ".{name}"),
            Element::Key(fields) => {
                out.write_str("[")?;
                for (place, (name, value)) in fields.iter().enumerate() {
                    let comma = if place > 0 { "," } else { "" };
                    write!(out, "{comma}{name}={}", KeyValue(value))?;
                }
                out.write_str("]")
            }
            Element::Value(value) => write!(out, "[={}]", KeyValue(value)),
            Element::Index(index) => write!(out, "[{index}]"),
        }
    }
}

/// A key's value as conflict messages print it.
struct KeyValue<'a>(&'a Value);

impl fmt::Display for KeyValue<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Null => out.write_str("null"),
            Value::String(text) => write!(out, "{}", Quoted(text)),
            Value::Array(items) => {
                out.write_str("[")?;
                for (place, item) in items.iter().enumerate() {
                    write!(
                        out,
                        "{}{}",
                        if place > 0 { "," } else { "" },
                        KeyValue(item)
                    )?;
                }
                out.write_str("]")
            }
            Value::Object(map) => map
                .iter()
                .try_for_each(|(name, value)| write!(out, "{name}={}", KeyValue(value))),
            other => write!(out, "{}", GoValue(other)),
        }
    }
}

/// The path of a field from the root of an object, as conflict messages print it:
/// `.spec.template.spec.containers[name="a"].image`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct FieldPath(pub Vec<Element>);

impl FieldPath {
    /// A path of field names.
    pub fn fields(names: &[&str]) -> FieldPath {
        FieldPath(names.iter().map(|name| Element::field(name)).collect())
    }
}

impl FieldPath {
    /// Approximate memory use.
    pub(in crate::apply) fn bytes(&self) -> usize {
        let text = |element: &Element| match element {
            Element::Field(name) => name.len(),
            other => other.to_string().len(),
        };
        self.0
            .iter()
            .map(|element| size_of::<Element>() + text(element))
            .sum()
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|element| write!(out, "{element}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_prints_as_in_conflict_messages() {
        let ports = vec![
            (Text::new("protocol"), Value::string("TCP")),
            (Text::new("containerPort"), Value::Int(80)),
        ];

        let path = FieldPath(vec![
            Element::field("spec"),
            Element::key(ports),
            Element::Value(Value::string("x\"y")),
            Element::Value(Value::Float(1.5)),
            Element::Value(Value::Null),
            Element::Index(3),
        ]);

        assert_eq!(
            path.to_string(),
            r#".spec[containerPort=80,protocol="TCP"][="x\"y"][=1.5][=null][3]"#
        );
    }

    #[test]
    fn fields_sort_before_keys_before_values_before_indices() {
        let key = |name: &str, value: i64| Element::key(vec![(Text::new(name), Value::Int(value))]);
        let ascending = [
            Element::field(""),
            Element::field("a"),
            key("a", 1),
            key("a", 2),
            key("b", 1),
            Element::Value(Value::Int(1)),
            Element::Value(Value::string("a")),
            Element::Index(-1),
            Element::Index(0),
        ];

        for pair in ascending.windows(2) {
            assert!(pair[0] < pair[1], "{} before {}", pair[0], pair[1]);
        }
    }
}
