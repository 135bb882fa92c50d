//! What the expressions of a mutating policy return, applied to an object.
//!
//! An apply configuration is an `Object{…}` ([`apply_configuration`]): it becomes a tree (`native`)
//! and is merged as server-side apply merges, without ownership. A list of `JSONPatch{…}`
//! ([`json_patch`]) becomes a JSON patch (`json`) of the object's text. In both, the types of nested
//! objects must be named after their place (`type_names`).

mod json;
mod native;
#[cfg(test)]
mod tests;
mod type_names;

use coracle_api::apply::{self, OverlayError, overlay};
use coracle_api::catalog::split_api_version;
use coracle_api::{Value, patch};
use coracle_cel::value::Value as CelValue;

/// Why a mutation was not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MutationError {
    #[error("type mismatch: {0}")]
    TypeNames(String),
    /// A part of it is not the configuration of any object.
    #[error("invalid return type: *dynamic.ObjectVal")]
    NoConfiguration,
    #[error("error applying patch: {0}")]
    Overlay(OverlayError),
    /// No document describes the kind of the object.
    #[error(
        "error applying patch: failed to convert patch object to typed object: no corresponding type for {0}"
    )]
    Undescribed(String),
    #[error("JSONPath valueExpression evaluated to a type that could not marshal to JSON: {0}")]
    NoJson(String),
    #[error("JSON Patch: {0}")]
    Patch(patch::json::Error),
    /// The patch itself cannot be written.
    #[error("JSON Patch: {0}")]
    NoPatch(patch::json::DecodeError),
}

/// `object` with the configuration that an expression made. The object is of the type `of`, which
/// is that of its version, and keeps its kind. `None`: nothing describes its kind.
///
/// # Errors
/// The configuration is none of such an object, or sets what is owned as a whole.
pub fn apply_configuration(
    made: &CelValue<'_>,
    object: &Value,
    of: Option<apply::Type<'_>>,
) -> Result<Value, MutationError> {
    type_names::check(made).map_err(MutationError::TypeNames)?;
    let mut config = native::configuration(made).ok_or(MutationError::NoConfiguration)?;
    let of = of.ok_or_else(|| MutationError::Undescribed(kind_of(object)))?;

    if let Some(members) = config.value.as_object_mut() {
        for name in ["apiVersion", "kind"] {
            if let Some(value) = object.get(name) {
                members.insert(name, value.clone());
            }
        }
    }

    overlay(object, &config.value, &config.foreign, of).map_err(MutationError::Overlay)
}

/// The text of `object` with the patch that an expression made; `None`: an operation tests for
/// something else, so nothing is changed. Unchanged scalars keep their notation in the result, which
/// is to be decoded from its text.
///
/// # Errors
/// The patch does not apply.
pub fn json_patch(made: &CelValue<'_>, object: &Value) -> Result<Option<Value>, MutationError> {
    let operations = json::operations(made)?;
    let text = coracle_api::codec::json::to_vec(&operations);
    let patch = patch::json::decode_lenient(&text).map_err(MutationError::NoPatch)?;

    let text = coracle_api::codec::json::to_vec(object);
    let Ok(document) = coracle_api::codec::json::parse_literal(&text) else {
        return Ok(None);
    };

    match patch.apply(document) {
        Ok(patched) => Ok(Some(patched)),
        Err(patch::json::Error::TestFailed(_)) => Ok(None),
        Err(error) => Err(MutationError::Patch(error)),
    }
}

fn kind_of(object: &Value) -> String {
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = split_api_version(text("apiVersion"));
    format!("{group}/{version}, Kind={}", text("kind"))
}
