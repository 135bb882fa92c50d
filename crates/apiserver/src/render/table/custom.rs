//! The rows of custom resources: the values at the JSON paths of a definition's columns.

use coracle_api::Value;
use coracle_api::field_error::as_json;
use coracle_api::go_text::Float;
use coracle_api::time::{Time, Timestamp};
use coracle_kinds::print::Row;

use crate::definitions::{Cell, Version};

pub(super) fn row(object: &Value, version: &Version, now: Timestamp) -> Row {
    let mut cells = vec![Value::string(object.meta().name())];
    cells.extend(version.cells.iter().map(|cell| shown(object, cell, now)));
    Row {
        cells,
        completed: None,
    }
}

/// Only the first value of a path is shown.
fn shown(object: &Value, cell: &Cell, now: Timestamp) -> Value {
    let found = cell
        .path
        .as_ref()
        .and_then(|path| path.find(object).first().copied());

    let Some(found) = found.filter(|found| !found.is_null()) else {
        return Value::Null;
    };
    match (cell.of.as_str(), found) {
        ("string", value) => Value::string(text(value)),
        ("integer", Value::Int(number)) => Value::Int(*number),
        #[expect(clippy::cast_possible_truncation, reason = "as upstream does")]
        ("integer", Value::Float(number)) => Value::Int(*number as i64),
        ("number", Value::Int(_) | Value::Float(_)) | ("boolean", Value::Bool(_)) => found.clone(),
        ("date", Value::String(moment)) => match Time::parse(moment) {
            Ok(Time(moment)) => Value::string(now.since(moment).human().to_string()),
            Err(_) => Value::string("<invalid>"),
        },
        _ => Value::Null,
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.to_string(),
        Value::Bool(flag) => flag.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Float(number) => Float(*number).to_string(),
        other => as_json(other),
    }
}
