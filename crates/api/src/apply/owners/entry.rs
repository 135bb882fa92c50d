//! One entry of `managedFields`.

use super::{Form, Manager, Operation, Owner};
use crate::apply::fields_v1::{self, FieldsError};
use crate::apply::order;
use crate::apply::set::Set;
use crate::codec::json;
use crate::go_text::Quoted;
use crate::time::Time;
use crate::{Map, Text, Value};

/// Why an entry cannot be used. The texts are upstream's; a client sees them in a warning.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    #[error("operation must be `Apply` or `Update`")]
    Operation,
    #[error("apiVersion must not be empty")]
    ApiVersion,
    #[error("missing fieldsType in managed fields entry {0}")]
    NoFieldsType(usize),
    #[error("invalid fieldsType {found} in managed fields entry {index}", found = Quoted(.found))]
    FieldsType { found: String, index: usize },
    #[error("error decoding set in managed fields entry {index}")]
    Fields { index: usize, source: FieldsError },
}

/// The entries of an object; none if they are malformed.
pub(super) fn entries(object: &Value) -> Option<&[Value]> {
    let entries = object.at(&["metadata", "managedFields"])?.as_array()?;
    entries.iter().all(is_well_formed).then_some(entries)
}

fn is_well_formed(entry: &Value) -> bool {
    let text_or_nothing = |map: &Map, name: &str| {
        map.get(name)
            .is_none_or(|value| matches!(value, Value::Null | Value::String(_)))
    };

    entry.as_object().is_some_and(|map| {
        let texts = [
            "manager",
            "operation",
            "apiVersion",
            "time",
            "fieldsType",
            "subresource",
        ];

        texts.iter().all(|name| text_or_nothing(map, name))
            && map.str("time").is_none_or(|time| Time::parse(time).is_ok())
    })
}

/// Whether an entry is empty.
pub(super) fn is_blank(entry: &Value) -> bool {
    let blank = |value: &Value| value.is_null() || value.as_str() == Some("");
    entry.as_object().is_some_and(|map| map.values().all(blank))
}

pub(super) fn decode(entry: &Value, index: usize) -> Result<Owner, EntryError> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
    let operation = match text("operation") {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return Err(EntryError::Operation),
    };

    if text("apiVersion").is_empty() {
        return Err(EntryError::ApiVersion);
    }

    match text("fieldsType") {
        "FieldsV1" => {}
        "" => return Err(EntryError::NoFieldsType(index)),
        other => {
            return Err(EntryError::FieldsType {
                found: other.to_owned(),
                index,
            });
        }
    }

    let fields = decode_fields(entry.get("fieldsV1"))
        .map_err(|source| EntryError::Fields { index, source })?;
    let manager = Manager {
        name: Text::new(text("manager")),
        operation,
        api_version: Text::new(text("apiVersion")),
        subresource: Text::new(text("subresource")),
    };

    let time = entry
        .get("time")
        .and_then(Value::as_str)
        .and_then(|time| Time::parse(time).ok());

    Ok(Owner {
        manager,
        time: time.map(|time| time.0),
        fields,
    })
}

/// Objects decoded by type have the raw text; custom resources have a tree.
fn decode_fields(fields: Option<&Value>) -> Result<Set, FieldsError> {
    match fields {
        None | Some(Value::Null) => Ok(Set::new()),
        Some(Value::Raw(raw)) => fields_v1::decode(raw.as_str()),
        Some(tree) => fields_v1::decode(&json::to_string(tree)),
    }
}

pub(super) fn encode(owner: &Owner, form: Form) -> Value {
    let manager = &owner.manager;
    let fields = Value::Raw(fields_v1::encode(&owner.fields));
    let fields = match form {
        Form::Text => fields,
        Form::Tree => order::tree(&fields).into_owned(),
    };

    let text = |text: &Text| (!text.is_empty()).then(|| Value::String(text.clone()));
    let members = [
        ("apiVersion", text(&manager.api_version)),
        (
            "fieldsType",
            Some(Value::String(Text::const_new("FieldsV1"))),
        ),
        ("fieldsV1", Some(fields)),
        ("manager", text(&manager.name)),
        (
            "operation",
            Some(Value::String(Text::const_new(manager.operation.as_str()))),
        ),
        ("subresource", text(&manager.subresource)),
        (
            "time",
            owner.time.map(|time| Value::String(Time(time).text())),
        ),
    ];

    let members = members
        .into_iter()
        .filter_map(|(name, value)| Some((Text::const_new(name), value?)));

    Value::Object(members.collect())
}
