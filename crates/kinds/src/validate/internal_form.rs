//! Trees as errors show them where upstream marshals its internal types, described by tables: Go's
//! names for the fields, in the order of the struct, with what an absent field shows.

use coracle_api::field_error::{FieldError, as_json};
use coracle_api::meta::validate::IMMUTABLE;
use coracle_api::{Path, Value};

use super::internal;
use crate::strategy::Errors;

/// How a value is shown.
pub(crate) enum Form {
    /// As its JSON; `null` where it is absent: pointers, maps of texts, lists of texts.
    Same,
    /// A text; empty where it is absent.
    Text,
    /// A number; 0 where it is absent.
    Number,
    /// A flag; `false` where it is absent.
    Flag,
    /// A struct, which is shown even where it is absent.
    Struct(Fields),
    /// A pointer to a struct; `null` where it is absent.
    Pointer(Fields),
    /// A list of such values; `null` where it is absent.
    List(&'static Form),
}

/// The fields of a struct: name in Go, name in JSON, form.
pub(crate) type Fields = &'static [(&'static str, &'static str, Form)];

/// A value as errors show it.
pub(crate) fn shown(value: Option<&Value>, form: &Form) -> String {
    let value = value.filter(|value| !value.is_null());
    match (form, value) {
        (Form::Struct(fields), value) | (Form::Pointer(fields), value @ Some(_)) => {
            object(value, fields)
        }
        (Form::List(item), Some(Value::Array(items))) => {
            internal::list(items.iter().map(|value| shown(Some(value), item)))
        }
        (_, Some(value)) => as_json(value),
        (Form::Text, None) => "\"\"".to_owned(),
        (Form::Number, None) => "0".to_owned(),
        (Form::Flag, None) => "false".to_owned(),
        (_, None) => "null".to_owned(),
    }
}

/// Validates an immutable part of an object. Lists and maps that are empty are as if absent.
pub(crate) fn validate_immutable(
    new: Option<&Value>,
    old: Option<&Value>,
    form: &Form,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let without_empty = |value: Option<&Value>| {
        let mut value = value.cloned().unwrap_or_default();
        remove_empty(&mut value);
        shown(Some(&value), form)
    };

    if without_empty(new) != without_empty(old) {
        errors.push(FieldError::invalid(at, shown(new, form), IMMUTABLE));
    }
}

/// Removes empty lists, and `null`. Empty structs are values where a pointer refers to them.
fn remove_empty(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.values_mut().for_each(remove_empty);
            map.retain(|_, value| match value {
                Value::Null => false,
                Value::Array(items) => !items.is_empty(),
                _ => true,
            });
        }
        Value::Array(items) => items.iter_mut().for_each(remove_empty),
        _ => {}
    }
}

fn object(value: Option<&Value>, fields: Fields) -> String {
    let members: Vec<(&str, String)> = fields
        .iter()
        .map(|(name, json, form)| (*name, shown(value.and_then(|value| value.get(json)), form)))
        .collect();
    internal::object(&members)
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::json;

    use super::*;
    use crate::validate::check_causes;

    #[test]
    fn an_empty_list_is_as_good_as_none_when_nothing_may_change() {
        const LIST: Form = Form::Struct(&[("List", "list", Form::Same)]);
        let check = |new: &str, old: &str, expected: &[&str]| {
            let read = |text: &str| json::parse(text.as_bytes()).unwrap();
            let mut errors = Errors::new();
            let at = Path::Root.field("spec");
            validate_immutable(Some(&read(new)), Some(&read(old)), &LIST, &at, &mut errors);
            check_causes(&errors, expected);
        };

        check(r#"{"list":[]}"#, "{}", &[]);
        check("{}", r#"{"list":[]}"#, &[]);
        check(
            r#"{"list":[]}"#,
            r#"{"list":["a"]}"#,
            &["spec: Invalid value: {\"List\":[]}: field is immutable"],
        );
    }

    #[test]
    fn fields_are_in_the_order_of_the_table_and_absent_ones_are_zero() {
        const INNER: Fields = &[("Name", "name", Form::Text)];
        const OUTER: Fields = &[
            ("B", "b", Form::Text),
            ("A", "a", Form::Same),
            ("Count", "count", Form::Number),
            ("On", "on", Form::Flag),
            ("Inner", "inner", Form::Struct(INNER)),
            ("Maybe", "maybe", Form::Pointer(INNER)),
            ("List", "list", Form::List(&Form::Struct(INNER))),
        ];
        let check = |tree: &str, expected: &str| {
            let tree = json::parse(tree.as_bytes()).unwrap();
            assert_eq!(shown(Some(&tree), &Form::Struct(OUTER)), expected);
        };

        check(
            "{}",
            r#"{"B":"","A":null,"Count":0,"On":false,"Inner":{"Name":""},"Maybe":null,"List":null}"#,
        );

        check(
            r#"{"a":["<"],"b":"x","count":2,"on":true,"inner":{"name":"i"},"maybe":{},"list":[]}"#,
            r#"{"B":"x","A":["\u003c"],"Count":2,"On":true,"Inner":{"Name":"i"},"Maybe":{"Name":""},"List":[]}"#,
        );
    }
}
