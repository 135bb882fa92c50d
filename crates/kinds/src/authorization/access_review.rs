//! SubjectAccessReview, LocalSubjectAccessReview and SelfSubjectAccessReview: whether a user may do
//! something.

use std::collections::BTreeMap;

use coracle_api::catalog::Struct;
use coracle_api::codec::json;
use coracle_api::field_error::{FieldError, FieldErrors, refuse};
use coracle_api::{Map, Path, Value, names, typed};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, ResourceAttributes, SelfSubjectAccessReviewSpec, SubjectAccessReviewSpec,
};

use crate::ApiError;
use crate::User;
use crate::strategy::{Errors, SPEC};
use crate::validate::{internal, items, text};

const GROUP: &str = "authorization.k8s.io";

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    Any,
    /// About one namespace.
    Namespace,
    /// About the user who makes the request.
    Own,
}

/// The access that a review asks about.
pub struct Question {
    pub resource: Option<ResourceAttributes>,
    pub path: Option<NonResourceAttributes>,
    /// Absent: the user who makes the request.
    pub user: Option<User>,
}

impl Question {
    /// The question in a review.
    pub fn of(object: &Value, scope: Scope) -> Result<Question, ApiError> {
        let spec = object.get("spec").cloned().unwrap_or_else(Value::object);
        let unreadable = |error: typed::TypedError| ApiError::internal(error.to_string());
        if scope == Scope::Own {
            let spec: SelfSubjectAccessReviewSpec = typed::from_tree(&spec).map_err(unreadable)?;
            return Ok(Question {
                resource: spec.resource_attributes,
                path: spec.non_resource_attributes,
                user: None,
            });
        }

        let spec: SubjectAccessReviewSpec = typed::from_tree(&spec).map_err(unreadable)?;
        let user = User {
            name: spec.user.unwrap_or_default(),
            uid: spec.uid.unwrap_or_default(),
            groups: spec.groups.unwrap_or_default(),
            extra: spec
                .extra
                .unwrap_or_default()
                .into_iter()
                .collect::<BTreeMap<_, _>>(),
        };

        Ok(Question {
            resource: spec.resource_attributes,
            path: spec.non_resource_attributes,
            user: Some(user),
        })
    }
}

/// Validates a question about access.
pub fn validate(
    object: &Value,
    question: &Question,
    scope: Scope,
    of: Struct<'_>,
) -> Result<(), ApiError> {
    let mut errors = FieldErrors::default();
    let (both, neither) = match (&question.resource, &question.path) {
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

    if question
        .user
        .as_ref()
        .is_some_and(|user| user.name.is_empty() && user.groups.is_empty())
    {
        let detail = "at least one of user or group must be specified";
        errors.push(FieldError::invalid_str(&SPEC.field("user"), "", detail));
    }

    if let Some(resource) = &question.resource {
        validate_selectors(resource, &mut errors);
    }

    validate_metadata(object, scope, of, &mut errors);

    if scope == Scope::Namespace {
        validate_local(object, question, &mut errors);
    }

    ApiError::if_any(GROUP, &errors)
}

fn validate_metadata(object: &Value, scope: Scope, of: Struct<'_>, errors: &mut Errors) {
    let empty = Map::new();
    let metadata = object
        .get("metadata")
        .and_then(Value::as_object)
        .unwrap_or(&empty);

    let may_have =
        |name: &str| name == "managedFields" || scope == Scope::Namespace && name == "namespace";
    if metadata.keys().all(may_have) {
        return;
    }

    let detail = if scope == Scope::Namespace {
        "must be empty except for namespace"
    } else {
        "must be empty"
    };

    let mut alone = Map::new();
    alone.insert("metadata", metadata.clone());
    let mut text = Vec::new();
    json::write_typed(&Value::Object(alone), of.node(), &mut text);
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

fn validate_local(object: &Value, question: &Question, errors: &mut Errors) {
    if let Some(resource) = &question.resource
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

    if let Some(path) = &question.path {
        let at = SPEC.field("nonResourceAttributes");
        errors.push(FieldError::invalid(
            &at,
            shown(path),
            "disallowed on this kind of request",
        ));
    }
}

fn validate_selectors(resource: &ResourceAttributes, errors: &mut Errors) {
    let at = SPEC.field("resourceAttributes");
    if let Some(selector) = &resource.field_selector {
        let at = at.field("fieldSelector");
        let list = items(&selector.requirements);
        validate_forms(text(&selector.raw_selector), list.len(), &at, errors);

        let at = at.field("requirements");
        for (index, term) in list.iter().enumerate() {
            let at = at.index(index);
            if term.key.is_empty() {
                errors.push(FieldError::required(&at.field("key"), "must be specified"));
            }
            validate_values(&term.operator, items(&term.values), &at, errors);
        }
    }

    if let Some(selector) = &resource.label_selector {
        let at = at.field("labelSelector");
        let list = items(&selector.requirements);
        validate_forms(text(&selector.raw_selector), list.len(), &at, errors);

        let at = at.field("requirements");
        for (index, term) in list.iter().enumerate() {
            let at = at.index(index);
            let values = items(&term.values);
            validate_values(&term.operator, values, &at, errors);
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

/// Validates that a selector is given raw or parsed, not both.
fn validate_forms(raw: &str, terms: usize, at: &Path<'_>, errors: &mut Errors) {
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

fn validate_values(operator: &str, values: &[String], at: &Path<'_>, errors: &mut Errors) {
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
        // Newer clients may send operators that this server does not support.
        _ => {}
    }
}

fn shown(path: &NonResourceAttributes) -> String {
    internal::object(&[
        ("Path", internal::text(text(&path.path))),
        ("Verb", internal::text(text(&path.verb))),
    ])
}
