//! Whether a question about access is one.

use coracle_api::codec::json;
use coracle_api::field_error::{FieldError, FieldErrors, refuse};
use coracle_api::{Map, Path, Value, names};
use k8s_openapi::api::authorization::v1::{NonResourceAttributes, ResourceAttributes};

use super::access_review::Asked;
use crate::ApiError;
use crate::registry::Call;
use crate::registry::review::refused_if_any;
use crate::registry::strategy::{Errors, SPEC};
use crate::registry::validate::{internal, items, text};

const GROUP: &str = "authorization.k8s.io";

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    Plain,
    /// About one namespace.
    Local,
    OfOneself,
}

pub(super) fn judge(
    object: &Value,
    asked: &Asked,
    sort: Sort,
    call: &Call<'_>,
) -> Result<(), ApiError> {
    let mut errors = FieldErrors::default();
    let (both, neither) = match (&asked.resource, &asked.path) {
        (Some(_), Some(path)) => (Some(path), false),
        (None, None) => (None, true),
        _ => (None, false),
    };

    if let Some(path) = both {
        let detail = "cannot be specified in combination with resourceAttributes";
        errors.push(FieldError::invalid(
            &SPEC.field("nonResourceAttributes"),
            shown(path),
            detail,
        ));
    }

    if neither {
        let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
        errors.push(FieldError::invalid(
            &SPEC.field("resourceAttributes"),
            "null".to_owned(),
            detail,
        ));
    }

    if asked
        .user
        .as_ref()
        .is_some_and(|user| user.name.is_empty() && user.groups.is_empty())
    {
        let detail = "at least one of user or group must be specified";
        errors.push(FieldError::invalid_str(&SPEC.field("user"), "", detail));
    }

    if let Some(resource) = &asked.resource {
        judge_selectors(resource, &mut errors);
    }

    judge_metadata(object, sort, call, &mut errors);

    if sort == Sort::Local {
        judge_local(object, asked, &mut errors);
    }

    refused_if_any(GROUP, &errors)
}

fn judge_metadata(object: &Value, sort: Sort, call: &Call<'_>, errors: &mut Errors) {
    let empty = Map::new();
    let metadata = object
        .get("metadata")
        .and_then(Value::as_object)
        .unwrap_or(&empty);

    let may_have =
        |name: &str| name == "managedFields" || sort == Sort::Local && name == "namespace";
    if metadata.keys().all(may_have) {
        return;
    }

    let detail = if sort == Sort::Local {
        "must be empty except for namespace"
    } else {
        "must be empty"
    };

    let mut alone = Map::new();
    alone.insert("metadata", metadata.clone());
    let mut text = Vec::new();
    json::write_typed(&Value::Object(alone), call.scope.of.node(), &mut text);
    let text = String::from_utf8_lossy(&text);
    let shown = text
        .strip_prefix("{\"metadata\":")
        .and_then(|text| text.strip_suffix('}'))
        .unwrap_or(&text);

    errors.push(FieldError::invalid(
        &Path::Root.field("metadata"),
        shown.to_owned(),
        detail,
    ));
}

fn judge_local(object: &Value, asked: &Asked, errors: &mut Errors) {
    if let Some(resource) = &asked.resource
        && text(&resource.namespace) != object.meta().namespace()
    {
        let at = SPEC.field("resourceAttributes.namespace");
        let detail = "must match metadata.namespace";
        errors.push(FieldError::invalid_str(
            &at,
            text(&resource.namespace),
            detail,
        ));
    }

    if let Some(path) = &asked.path {
        let at = SPEC.field("nonResourceAttributes");
        errors.push(FieldError::invalid(
            &at,
            shown(path),
            "disallowed on this kind of request",
        ));
    }
}

fn judge_selectors(resource: &ResourceAttributes, errors: &mut Errors) {
    let at = SPEC.field("resourceAttributes");
    if let Some(selector) = &resource.field_selector {
        let at = at.field("fieldSelector");
        let list = items(&selector.requirements);
        judge_forms(text(&selector.raw_selector), list.len(), &at, errors);

        let at = at.field("requirements");
        for (index, term) in list.iter().enumerate() {
            let at = at.index(index);
            if term.key.is_empty() {
                errors.push(FieldError::required(&at.field("key"), "must be specified"));
            }
            judge_values(&term.operator, items(&term.values), &at, errors);
        }
    }

    if let Some(selector) = &resource.label_selector {
        let at = at.field("labelSelector");
        let list = items(&selector.requirements);
        judge_forms(text(&selector.raw_selector), list.len(), &at, errors);

        let at = at.field("requirements");
        for (index, term) in list.iter().enumerate() {
            let at = at.index(index);
            let values = items(&term.values);
            judge_values(&term.operator, values, &at, errors);
            refuse(
                &at.field("key"),
                &term.key,
                names::qualified_name(&term.key),
                errors,
            );

            for (index, value) in values.iter().enumerate() {
                refuse(
                    &at.field("values").index(index),
                    value,
                    names::label_value(value),
                    errors,
                );
            }
        }
    }
}

/// A selector is written in one of two ways.
fn judge_forms(raw: &str, terms: usize, at: &Path<'_>, errors: &mut Errors) {
    if !raw.is_empty() && terms > 0 {
        let detail = "may not specified at the same time as requirements";
        errors.push(FieldError::invalid_str(
            &at.field("rawSelector"),
            raw,
            detail,
        ));
    }

    if raw.is_empty() && terms == 0 {
        let detail = format!("when {at} is specified, requirements or rawSelector is required");
        errors.push(FieldError::required(&at.field("requirements"), detail));
    }
}

fn judge_values(operator: &str, values: &[String], at: &Path<'_>, errors: &mut Errors) {
    let at = at.field("values");
    match operator {
        "In" | "NotIn" if values.is_empty() => {
            errors.push(FieldError::required(
                &at,
                "must be specified when `operator` is 'In' or 'NotIn'",
            ));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(FieldError::forbidden(&at, detail));
        }
        // Newer clients may know operators that we do not.
        _ => {}
    }
}

fn shown(path: &NonResourceAttributes) -> String {
    internal::object(&[
        ("Path", internal::text(text(&path.path))),
        ("Verb", internal::text(text(&path.verb))),
    ])
}
