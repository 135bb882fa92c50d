//! Patch: the current object with a client's change put into it, then the road of an update.

use std::borrow::Cow;

use bytes::Bytes;
use coracle_api::catalog::Struct;
use coracle_api::codec::json;
use coracle_api::codec::media_type::PatchType;
use coracle_api::field_error::{FieldError, FieldErrors};
use coracle_api::go_text::GoValue;
use coracle_api::patch;
use coracle_api::{Map, Path, Value};
use http::StatusCode;

use super::create::Written;
use super::{Part, Registry, Scope, meta};
use crate::ApiError;
use crate::request::{FieldValidation, WriteOptions};

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
                let shown = scope.hub.show(Cow::Borrowed(old), scope.kind);
                let (mut new, noticed) =
                    instructions.put_into(&shown, body, scope.of, &complaints, validation)?;
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

/// What a patch makes of an object, and what the client is to be warned of.
pub(super) fn patched(
    kind: PatchType,
    body: &[u8],
    old: &Value,
    of: Struct<'_>,
    validation: FieldValidation,
) -> Result<(Value, Vec<String>), ApiError> {
    let (instructions, complaints) = decode(kind, body)?;
    instructions.put_into(old, body, of, &complaints, validation)
}

fn decode(kind: PatchType, body: &[u8]) -> Result<(Instructions, Vec<String>), ApiError> {
    let bad = |error: String| ApiError::bad_request(error);
    match kind {
        PatchType::Json => {
            let decoded = patch::json::decode(body).map_err(|error| bad(error.to_string()))?;
            if decoded.patch.len() > patch::json::MAX_OPERATIONS {
                return Err(ApiError::new(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    "RequestEntityTooLarge",
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
            let decoded = patch::strategic::decode(body).map_err(|error| bad(error.to_string()))?;
            Ok((Instructions::Strategic(decoded.patch), decoded.strict))
        }
        PatchType::Apply => {
            unreachable!("a configuration is applied, not decoded as instructions: Registry::apply")
        }
    }
}

impl Instructions {
    /// The changed object, and what the client is to be warned of: unknown and repeated fields, of the patch
    /// (`complaints`) and of what it made.
    fn put_into(
        &self,
        old: &Value,
        body: &[u8],
        of: Struct<'_>,
        complaints: &[String],
        validation: FieldValidation,
    ) -> Result<(Value, Vec<String>), ApiError> {
        let text = match self {
            Instructions::Json(patch) => {
                let changed = patch.apply(literal(old)).map_err(|_| rejected())?;
                json::to_vec(&changed)
            }
            Instructions::Merge(patch) => json::to_vec(&patch::merge::apply(literal(old), patch.clone())),
            Instructions::Strategic(patch) => {
                let object = old.as_object().cloned().unwrap_or_default();
                let changed = patch::strategic::apply(object, patch.clone(), of)
                    .map_err(|error| ApiError::unexplained(error.to_string()))?;
                json::to_vec(&Value::Object(changed))
            }
        };
        let decoded =
            json::decode(&text, Some(of.node())).map_err(|error| self.refused(body, &error.to_string()))?;
        let complaints = [complaints, &decoded.strict[..]].concat();
        match validation {
            FieldValidation::Strict if !complaints.is_empty() => {
                let why = format!("strict decoding error: {}", complaints.join(", "));
                Err(self.refused(body, &why))
            }
            FieldValidation::Ignore => Ok((decoded.value, Vec::new())),
            _ => Ok((decoded.value, complaints)),
        }
    }

    /// What the patch makes is no object of the kind.
    fn refused(&self, body: &[u8], why: &str) -> ApiError {
        let shown = match self {
            Instructions::Strategic(patch) => GoValue(&Value::Object(patch.clone())).to_string(),
            _ => String::from_utf8_lossy(body).into_owned(),
        };
        let error = FieldError::invalid_str(&Path::Root.field("patch"), &shown, why);
        let mut refused = ApiError::invalid_kind("", "", "", &FieldErrors(vec![error]));
        refused.message = refused.message.trim_start_matches('.').to_string();
        refused
    }
}

/// The object as text has it: the engines for text work on that.
fn literal(object: &Value) -> Value {
    let text = json::to_vec(object);
    json::parse_literal(&text).expect("this server wrote it")
}

/// Upstream does not say which operation failed, nor why.
fn rejected() -> ApiError {
    let mut error = ApiError::new(
        StatusCode::UNPROCESSABLE_ENTITY,
        "Invalid",
        "the server rejected our request due to an error in our request",
    );
    error.details = Some(Box::default());
    error
}
