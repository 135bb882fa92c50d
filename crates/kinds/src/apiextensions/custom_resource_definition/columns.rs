//! The columns that a custom resource is listed with, and the fields that it can be selected by.

use std::collections::BTreeSet;

use coracle_api::field_error::FieldError;
use coracle_api::schema::Props;
use coracle_api::schema::check::field_path;
use coracle_api::{Map, Path, Value};

use super::subresources::is_simple;
use crate::strategy::Errors;

const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const FORMATS: [&str; 8] = [
    "byte",
    "date",
    "date-time",
    "double",
    "float",
    "int32",
    "int64",
    "password",
];

/// The most selectable fields of a version.
const MOST_SELECTABLE: usize = 8;

/// Validates the columns of a version, or of all.
pub(super) fn validate(of: &Map, at: &Path<'_>, errors: &mut Errors) {
    let list = at.field("additionalPrinterColumns");
    for (index, column) in of.items("additionalPrinterColumns").iter().enumerate() {
        let at = list.index(index);
        let text = |name: &str| column.get(name).and_then(Value::as_str).unwrap_or_default();
        if text("name").is_empty() {
            errors.push(FieldError::required(&at.field("name"), ""));
        }

        let types = || format!("must be one of {}", TYPES.join(","));
        match text("type") {
            "" => errors.push(FieldError::required(&at.field("type"), types())),
            found if !TYPES.contains(&found) => {
                errors.push(FieldError::invalid_str(&at.field("type"), found, types()));
            }
            _ => {}
        }

        let format = text("format");
        if !format.is_empty() && !FORMATS.contains(&format) {
            let detail = format!("must be one of {}", FORMATS.join(","));
            errors.push(FieldError::invalid_str(&at.field("format"), format, detail));
        }

        let path = at.field("JSONPath");
        match text("JSONPath") {
            "" => errors.push(FieldError::required(&path, "")),
            found => {
                is_simple(found, &path, errors);
            }
        }
    }
}

/// Validates the selectable fields of a version or of all; `schema` is the schema that they refer
/// to.
pub(super) fn validate_selectable(
    of: &Map,
    schema: Option<&Map>,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let fields = of.items("selectableFields");
    if fields.is_empty() {
        return;
    }

    let list = at.field("selectableFields");
    let schema = schema
        .and_then(|schema| schema.get("openAPIV3Schema"))
        .filter(|schema| !schema.is_null());
    let Some(schema) = schema else {
        let detail = "may only be set when validations.schema is set";
        return errors.push(FieldError::invalid_str(&list, "", detail));
    };

    let mut known = BTreeSet::new();
    for (index, field) in fields.iter().enumerate() {
        let item = list.index(index);
        let at = item.field("jsonPath");
        let path = field
            .get("jsonPath")
            .and_then(Value::as_str)
            .unwrap_or_default();

        if path.is_empty() {
            errors.push(FieldError::required(&at, ""));
            continue;
        }

        let (found, names) = match field_path(path, Props::of(schema), false) {
            Ok(found) => found,
            Err(why) => {
                errors.push(FieldError::invalid_str(
                    &at,
                    path,
                    format!("is an invalid path: {why}"),
                ));
                continue;
            }
        };

        if names.first().is_some_and(|name| name == "metadata") {
            errors.push(FieldError::invalid_str(
                &item,
                path,
                "must not point to fields in metadata",
            ));
        }

        if !matches!(found.type_name(), "string" | "boolean" | "integer") {
            let detail = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
            errors.push(FieldError::invalid_str(&at, path, detail));
        }

        if !known.insert(names) {
            errors.push(FieldError::duplicate(
                &at,
                coracle_api::go_text::Quoted(path).to_string(),
            ));
        }
    }

    if known.len() > MOST_SELECTABLE {
        errors.push(FieldError::too_many(&list, fields.len(), MOST_SELECTABLE));
    }
}
