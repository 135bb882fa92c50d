//! Patch: applies a client's change to the current object, then continues as an update.

use std::borrow::Cow;

use bytes::Bytes;
use coracle_api::codec::json;
use coracle_api::codec::media_type::PatchType;
use coracle_api::convert::convert;
use coracle_api::field_error::{FieldError, FieldErrors};
use coracle_api::go_text::{GoValue, Quoted};
use coracle_api::patch::{self, strategic};
use coracle_api::time::Timestamp;
use coracle_api::{Map, Path, Text, Value, defaults};
use http::StatusCode;

use super::create::Written;
use super::decode::{Declared, defined, is_same};
use super::{Part, Registry, Scope, meta};
use crate::ApiError;
use crate::request::{FieldValidation, WriteOptions};
use crate::status::Reason;

/// A decoded patch of one of the kinds that are instructions (apply is none).
enum Instructions {
    Json(patch::json::Patch),
    Merge(Value),
    Strategic(Map),
}

impl Registry {
    pub async fn patch(
        &self,
        scope: &Scope<'_>,
        name: &str,
        part: Part,
        kind: PatchType,
        body: &Bytes,
        options: &WriteOptions,
    ) -> Result<Written, ApiError> {
        let (instructions, complaints) = decode(kind, body)?;
        let mut warnings = Vec::new();

        let mut written = self
            .change(scope, name, part, options, |old| {
                let validation = options.field_validation;
                let shown = scope.storage_version.show(Cow::Borrowed(old), scope.kind);
                let (mut new, noticed) =
                    instructions.put_into(&shown, scope, &complaints, validation, self.now)?;
                warnings = noticed;
                self.settle(scope, &mut new)?;
                meta::settle_namespace(&mut new, scope)?;
                meta::check_name(&new, name)?;
                warnings.extend(meta::merge_owners(&mut new));

                Ok(new)
            })
            .await?;
        written.warnings.splice(..0, warnings);

        Ok(written)
    }
}

/// The patched object, and warnings for the client.
pub(super) fn patched(
    kind: PatchType,
    body: &[u8],
    old: &Value,
    scope: &Scope<'_>,
    validation: FieldValidation,
    now: fn() -> Timestamp,
) -> Result<(Value, Vec<String>), ApiError> {
    let (instructions, complaints) = decode(kind, body)?;
    instructions.put_into(old, scope, &complaints, validation, now)
}

fn decode(kind: PatchType, body: &[u8]) -> Result<(Instructions, Vec<String>), ApiError> {
    let bad = |error: String| ApiError::bad_request(error);
    match kind {
        PatchType::Json => {
            let decoded = patch::json::decode(body).map_err(|error| bad(error.to_string()))?;
            if decoded.patch.len() > patch::json::MAX_OPERATIONS {
                return Err(ApiError::new(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    Reason::RequestEntityTooLarge,
                    format!(
                        "Request entity too large: The allowed maximum operations in a JSON patch is {}, got {}",
                        patch::json::MAX_OPERATIONS,
                        decoded.patch.len()
                    ),
                ));
            }

            Ok((Instructions::Json(decoded.patch), decoded.strict))
        }
        PatchType::Merge => {
            let decoded = patch::merge::decode(body).map_err(|error| bad(error.to_string()))?;
            Ok((Instructions::Merge(decoded.patch), decoded.strict))
        }
        PatchType::StrategicMerge => {
            let decoded = strategic::decode(body).map_err(|error| bad(error.to_string()))?;
            Ok((Instructions::Strategic(decoded.patch), decoded.strict))
        }
        PatchType::Apply | PatchType::ApplyCbor => {
            unreachable!("a configuration is applied, not decoded as instructions: Registry::apply")
        }
    }
}

impl Instructions {
    /// The patched object, and warnings for the client: unknown and duplicate fields, of the patch
    /// (`complaints`) and of the result.
    fn put_into(
        &self,
        old: &Value,
        scope: &Scope<'_>,
        complaints: &[String],
        validation: FieldValidation,
        now: fn() -> Timestamp,
    ) -> Result<(Value, Vec<String>), ApiError> {
        let mut changed = match self {
            Instructions::Json(patch) => patch.apply(literal(old)).map_err(|_| rejected())?,
            Instructions::Merge(patch) => patch::merge::apply(literal(old), patch.clone()),
            Instructions::Strategic(patch) => {
                let object = old.as_object().cloned().unwrap_or_default();
                Value::Object(
                    strategic::apply(object, patch.clone(), scope.of).map_err(not_merged)?,
                )
            }
        };

        let decoded = match self {
            // Errors show the patch and not its result, so the result can be moved.
            Instructions::Strategic(_) => restored(changed.take(), old, scope),
            _ => as_declared(&changed, scope, validation, now),
        };

        let refused = |why: &str| refused(&self.shown(&changed, old, scope), why);
        let decoded = decoded.map_err(|why| refused(&why))?;

        let complaints = [complaints, &decoded.strict[..]].concat();
        match validation {
            FieldValidation::Strict if !complaints.is_empty() => Err(refused(&format!(
                "strict decoding error: {}",
                complaints.join(", ")
            ))),
            FieldValidation::Ignore => Ok((decoded.value, Vec::new())),
            _ => Ok((decoded.value, complaints)),
        }
    }

    /// The text that errors about the patched object show.
    fn shown(&self, changed: &Value, old: &Value, scope: &Scope<'_>) -> String {
        match self {
            Instructions::Strategic(patch) => GoValue(&Value::Object(patch.clone())).to_string(),
            _ => patch::patched_text(changed, old, scope.of.node()),
        }
    }
}

/// A patched text. It is decoded as any body is, with its declared type; but where it declares no
/// version, upstream takes it for its internal one, which has none of the fields.
fn as_declared(
    changed: &Value,
    scope: &Scope<'_>,
    validation: FieldValidation,
    now: fn() -> Timestamp,
) -> Result<json::Decoded, String> {
    let text = json::to_vec(changed);
    let mut declared = Declared::of(&text)?;
    if let Some((_, version)) = scope.custom {
        return declared
            .is_of(scope)
            .and_then(|()| defined(&text, version, scope));
    }

    if declared.kind.is_empty() {
        declared.kind = scope.kind.name.clone();
    }

    if declared.api_version.is_empty() && declared.kind == scope.kind.name {
        let members = changed.as_object().into_iter().flat_map(Map::keys);
        let unknown = members.filter(|name| !matches!(*name, "apiVersion" | "kind"));
        let strict = unknown
            .map(|name| format!("unknown field {}", Quoted(name)))
            .collect();
        return Ok(json::Decoded {
            value: Value::object(),
            strict,
        });
    }

    let (mut decoded, kind) = declared.decode(&text, scope, validation)?;
    if !is_same(kind, scope.kind) {
        defaults::apply(&mut decoded.value, kind, now()).map_err(|error| error.to_string())?;
        decoded.value = convert(decoded.value, scope.kind).map_err(|error| error.to_string())?;
    }

    Ok(decoded)
}

/// A patched tree. Its declared type is ignored. What the patch did not change was decoded before,
/// so only the rest is decoded again.
fn restored(changed: Value, old: &Value, scope: &Scope<'_>) -> Result<json::Decoded, String> {
    let Value::Object(members) = changed else {
        unreachable!("a merge makes an object")
    };
    let is_untouched = |(name, value): &(Text, Value)| old.get(name) == Some(value);
    let (untouched, touched): (Vec<_>, Vec<_>) = members.into_iter().partition(is_untouched);
    let mut touched = Map::from_members(touched);
    strategic::restore(&mut touched, scope.of).map_err(|error| error.to_string())?;

    let decoded = json::decode(
        &json::to_vec(&Value::Object(touched)),
        Some(scope.of.node()),
    );
    let mut decoded = decoded.map_err(|error| error.to_string())?;
    decoded.strict.sort();

    if let Some(members) = decoded.value.as_object_mut() {
        untouched
            .into_iter()
            .for_each(|(name, value)| drop(members.insert(name, value)));
    }

    Ok(decoded)
}

/// A strategic merge patch that cannot be merged.
fn not_merged(error: strategic::Error) -> ApiError {
    use strategic::Error;
    match error {
        Error::BadPrimitiveList | Error::BadRetainKeys | Error::BadElementOrder => {
            ApiError::bad_request(error.to_string())
        }
        Error::ListOfLists => rejected(),
        other => ApiError::unexplained(other.to_string()),
    }
}

/// The error where the result of a patch is no object of the kind.
fn refused(shown: &str, why: &str) -> ApiError {
    let error = FieldError::invalid_str(&Path::Root.field("patch"), shown, why);
    let mut refused = ApiError::invalid_kind("", "", "", &FieldErrors::from(error));
    refused.message = refused.message.trim_start_matches('.').to_string();
    refused
}

/// The object as text has it: the engines for text work on that.
fn literal(object: &Value) -> Value {
    let text = json::to_vec(object);
    json::parse_literal(&text).expect("this server wrote it")
}

/// Upstream does not report which operation failed, nor why.
fn rejected() -> ApiError {
    let mut error = ApiError::new(
        StatusCode::UNPROCESSABLE_ENTITY,
        Reason::Invalid,
        "the server rejected our request due to an error in our request",
    );
    error.details = Some(Box::default());
    error
}
