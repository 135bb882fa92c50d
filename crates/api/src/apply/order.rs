//! Equality and order of values: keys of lists are sorted by it, and changes are detected with it.
//!
//! Numbers come first, integers and floats in one order, then strings, booleans, lists, objects and
//! null. A raw value compares as what its text describes.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::Value;
use crate::codec::json;

/// Whether two values are equal: `1` and `1.0` are, `null` and `[]` are not.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::String(a), Value::String(b)) => a == b,
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .zip(b.iter())
                    .all(|((a_name, a), (b_name, b))| a_name == b_name && same(a, b))
        }
        (Value::Raw(a), Value::Raw(b)) if a == b => true,
        _ => compare(a, b) == Ordering::Equal,
    }
}

/// The order of values.
pub(super) fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Int(a), Value::Float(b)) => numbers(as_float(*a), *b),
        (Value::Float(a), Value::Int(b)) => numbers(*a, as_float(*b)),
        (Value::Float(a), Value::Float(b)) => numbers(*a, *b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            let difference = a
                .iter()
                .zip(b)
                .map(|(a, b)| compare(a, b))
                .find(|order| order.is_ne());
            difference.unwrap_or(a.len().cmp(&b.len()))
        }
        (Value::Object(a), Value::Object(b)) => {
            let pairs = a.iter().zip(b.iter());
            let difference = pairs
                .map(|((a_name, a), (b_name, b))| a_name.cmp(b_name).then_with(|| compare(a, b)))
                .find(|order| order.is_ne());
            difference.unwrap_or(a.len().cmp(&b.len()))
        }
        (Value::Raw(_), _) | (_, Value::Raw(_)) => compare(&tree(a), &tree(b)),
        _ => rank(a).cmp(&rank(b)),
    }
}

/// The value itself, or the tree that its raw text describes.
pub(super) fn tree(value: &Value) -> Cow<'_, Value> {
    match value {
        // Text that cannot become a tree (nested too deeply) counts as empty: no part of it can be
        // owned.
        Value::Raw(raw) => Cow::Owned(json::parse(raw.as_str().as_bytes()).unwrap_or_default()),
        _ => Cow::Borrowed(value),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Int(_) | Value::Float(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null | Value::Raw(_) => 5,
    }
}

fn numbers(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or(Ordering::Equal)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "whole and fractional numbers are compared as fractional ones"
)]
fn as_float(number: i64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn values_are_ordered_by_kind_then_content() {
        let ascending = [
            "-1.5",
            "0",
            "0.5",
            "1",
            "2e9",
            r#""""#,
            r#""a""#,
            r#""b""#,
            "false",
            "true",
            "[]",
            "[1]",
            "[1,2]",
            "[2]",
            "{}",
            r#"{"a":1}"#,
            r#"{"a":1,"b":0}"#,
            r#"{"a":2}"#,
            r#"{"b":0}"#,
            "null",
        ];

        for (index, low) in ascending.iter().enumerate() {
            assert!(same(&parsed(low), &parsed(low)), "{low} is itself");

            for high in &ascending[index + 1..] {
                assert_eq!(
                    compare(&parsed(low), &parsed(high)),
                    Ordering::Less,
                    "{low} before {high}"
                );

                assert_eq!(
                    compare(&parsed(high), &parsed(low)),
                    Ordering::Greater,
                    "{high} behind {low}"
                );

                assert!(!same(&parsed(low), &parsed(high)), "{low} is not {high}");
            }
        }
    }

    #[test]
    fn a_raw_value_compares_as_what_its_text_describes() {
        let raw = Value::Raw(json::raw(br#"{"b":1,"a":[1.0]}"#).unwrap());
        assert!(same(&raw, &parsed(r#"{"a":[1],"b":1}"#)));
        assert!(!same(&raw, &parsed(r#"{"a":[1],"b":2}"#)));
    }
}
