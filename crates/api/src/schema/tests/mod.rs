//! Tables of cases through a few `check` functions. The order of errors is not specified upstream,
//! so they are compared sorted.

mod formats;
mod lists;
mod objects;
mod patterns;
mod schemas;
mod values;

use super::check::{self, Demands};
use super::{Props, Schema};
use crate::Value;
use crate::codec::json;
use crate::field_error::FieldError;
use crate::value::Path;

/// A value under the member `x` of an object.
fn check_value(schema: &str, value: &str, expected: &[&str]) {
    let schema = compiled(&format!(
        r#"{{"type":"object","properties":{{"x":{schema}}}}}"#
    ));
    let mut object = tree(&format!(r#"{{"x":{value}}}"#));
    admit(&schema, &mut object);

    let mut errors = schema.validate(&object, &Path::Root);
    errors.extend(schema.validate_embedded(&object));
    errors.extend(schema.validate_lists(&object));
    assert_eq!(
        sorted(&errors),
        sorted_texts(expected),
        "{value} under {:?}",
        schema.root()
    );
}

fn check_schema(schema: &str, expected: &[&str]) {
    let tree = tree(schema);
    let errors = check::schema(
        Props::of(&tree),
        false,
        Demands::ALL,
        &Path::Root.field("s"),
    )
    .errors;
    assert_eq!(sorted(&errors), sorted_texts(expected), "{schema}");
}

fn check_object(schema: &str, sent: &str, expected: &str, unknown: &[&str]) {
    let schema = compiled(schema);
    let mut object = tree(sent);
    assert_eq!(admit(&schema, &mut object), unknown, "{sent}");
    assert_eq!(json::to_string(&object), expected, "{sent}");
    assert!(
        admit(&schema, &mut object).is_empty(),
        "a second time nothing is unknown"
    );

    assert_eq!(
        json::to_string(&object),
        expected,
        "a second time nothing changes"
    );
}

fn check_update(schema: &str, old: &str, new: &str, expected: &[&str]) {
    let errors = compiled(schema).validate_update(&tree(new), &tree(old), &Path::Root);
    assert_eq!(sorted(&errors), sorted_texts(expected), "{old} to {new}");
}

/// The schema's part of decoding. Returns the unknown fields.
fn admit(schema: &Schema, object: &mut Value) -> Vec<String> {
    let mut unknown = schema.prune(object);
    schema.prune_nulls(object);
    unknown.extend(schema.coerce(object, false).unwrap());
    schema.default(object).unwrap();
    unknown.sort_unstable();
    unknown
}

fn compiled(schema: &str) -> Schema {
    Schema::new(Props::of(&tree(schema))).unwrap()
}

fn tree(text: &str) -> Value {
    json::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

fn sorted(errors: &[FieldError]) -> Vec<String> {
    let mut texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    texts.sort();
    texts
}

fn sorted_texts(texts: &[&str]) -> Vec<String> {
    let mut texts: Vec<String> = texts.iter().map(ToString::to_string).collect();
    texts.sort();
    texts
}
