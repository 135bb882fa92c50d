//! The body of a write: bytes to an object of the kind that the path names, refused in upstream's words.

use bytes::Bytes;
use coracle_api::Value;
use coracle_api::catalog::{BUILTIN, Kind};
use coracle_api::codec::media_type::MediaType;
use coracle_api::codec::{json, protobuf, yaml};
use coracle_api::convert::{ConvertError, is_convertible};

use super::Scope;
use crate::ApiError;
use crate::request::FieldValidation;

/// A request's body and the form it says it has.
#[derive(Clone, Debug)]
pub struct Body {
    pub bytes: Bytes,
    pub media_type: MediaType,
}

impl Body {
    /// The object, and what a client is to be warned of.
    pub(super) fn object(
        &self,
        scope: &Scope<'_>,
        validation: FieldValidation,
    ) -> Result<(Value, Vec<String>), ApiError> {
        let mut complaints = Vec::new();
        let text = match self.media_type {
            MediaType::Protobuf => return self.protobuf(scope, validation),
            MediaType::Json => self.bytes.clone(),
            MediaType::Yaml => {
                let (value, repeated) = yaml::decode_strict(&self.bytes)
                    .map_err(|error| self.unrecognized(scope, &error.to_string()))?;
                complaints.extend(repeated.map(|keys| keys.to_string()));
                Bytes::from(json::to_vec(&value))
            }
        };
        self.check_kind(&text, scope, validation)?;
        let decoded = json::decode(&text, Some(scope.of.node())).map_err(|error| {
            cannot_be_handled(&scope.kind.version, &scope.kind.name, scope, &error.to_string())
        })?;
        complaints.extend(decoded.strict);
        match validation {
            FieldValidation::Ignore => Ok((decoded.value, Vec::new())),
            FieldValidation::Strict if !complaints.is_empty() => {
                let text = format!("strict decoding error: {}", complaints.join(", "));
                Err(cannot_be_handled(&scope.kind.version, &scope.kind.name, scope, &text))
            }
            _ => Ok((decoded.value, complaints)),
        }
    }

    /// The options of a delete.
    pub fn delete_options(&self) -> Result<Value, ApiError> {
        let kind = BUILTIN.kind("", "v1", "DeleteOptions").expect("DeleteOptions are built in");
        let of = BUILTIN.root(kind);
        let bad = |error: String| ApiError::bad_request(error);
        match self.media_type {
            MediaType::Protobuf => {
                let envelope = protobuf::open(&self.bytes).map_err(|error| bad(error.to_string()))?;
                protobuf::decode_opened(&envelope, of).map_err(|error| bad(error.to_string()))
            }
            MediaType::Json | MediaType::Yaml => {
                let value = yaml_or_json(&self.bytes, self.media_type).map_err(bad)?;
                check_is_options(&value)?;
                let decoded =
                    json::decode(&value, Some(of.node())).map_err(|error| bad(error.to_string()))?;
                Ok(decoded.value)
            }
        }
    }

    /// Whether the text says it is what the path names. A body may leave both out.
    fn check_kind(
        &self,
        text: &[u8],
        scope: &Scope<'_>,
        validation: FieldValidation,
    ) -> Result<(), ApiError> {
        let parse_error = |error: &str| {
            self.unrecognized(scope, &format!("couldn't get version/kind; json parse error: {error}"))
        };
        json::raw(text).map_err(|error| parse_error(&error.to_string()))?;
        let untyped = json::parse(text).map_err(|error| parse_error(&error.to_string()))?;
        if untyped.is_null() {
            return Ok(());
        }
        let Some(map) = untyped.as_object() else {
            let found = untyped.type_name();
            return Err(parse_error(&format!(
                "json: cannot unmarshal {found} into Go value of type struct {{ APIVersion string \
                 \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
            )));
        };
        for name in ["apiVersion", "kind"] {
            if let Some(found) = map.get(name).filter(|found| !found.is_null() && found.as_str().is_none()) {
                let found = found.type_name();
                return Err(parse_error(&format!(
                    "json: cannot unmarshal {found} into Go struct field .{name} of type string"
                )));
            }
        }
        let (api_version, kind) =
            (map.str("apiVersion").unwrap_or_default(), map.str("kind").unwrap_or_default());
        if api_version.matches('/').count() > 1 {
            return Err(self.unrecognized(scope, &format!("unexpected GroupVersion string: {api_version}")));
        }
        judge_kind(api_version, kind, scope, validation)
    }

    fn protobuf(
        &self,
        scope: &Scope<'_>,
        validation: FieldValidation,
    ) -> Result<(Value, Vec<String>), ApiError> {
        let envelope =
            protobuf::open(&self.bytes).map_err(|error| self.unrecognized(scope, &error.to_string()))?;
        judge_kind(&envelope.api_version, &envelope.kind, scope, validation)?;
        let value = protobuf::decode_opened(&envelope, scope.of).map_err(|error| {
            cannot_be_handled(&scope.kind.version, &scope.kind.name, scope, &error.to_string())
        })?;
        Ok((value, Vec::new()))
    }

    fn unrecognized(&self, scope: &Scope<'_>, why: &str) -> ApiError {
        let kind = &scope.kind.name;
        ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): {why} ({})",
            self.dump()
        ))
    }

    /// The beginning of the body, as its message shows it: JSON as text, everything else in hexadecimal.
    fn dump(&self) -> String {
        const SHOWN: usize = 30;
        if self.bytes.is_empty() {
            return "<empty>".to_string();
        }
        let shown = &self.bytes[..self.bytes.len().min(SHOWN)];
        let more = if self.bytes.len() > SHOWN { " ..." } else { "" };
        if self.bytes.first() == Some(&b'{') {
            return format!("{}{more}", String::from_utf8_lossy(shown));
        }
        let hexadecimal: String = shown.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{hexadecimal}{more}")
    }
}

/// Empty names are filled in from the path; others must be known, and the path's.
fn judge_kind(
    api_version: &str,
    kind: &str,
    scope: &Scope<'_>,
    validation: FieldValidation,
) -> Result<(), ApiError> {
    let wanted = scope.kind.api_version();
    let (api_version, kind) = (
        if api_version.is_empty() { wanted.as_str() } else { api_version },
        if kind.is_empty() { scope.kind.name.as_str() } else { kind },
    );
    if api_version == wanted && kind == scope.kind.name {
        return Ok(());
    }
    let (_, version) = coracle_api::catalog::split_api_version(api_version);
    let known: Option<&Kind> = BUILTIN.kind_of(api_version, kind);
    let why = match known {
        Some(other) if is_convertible(other, scope.kind) => {
            return Err(ApiError::bad_request(format!(
                "the API version in the data ({api_version}) does not match the expected API version ({wanted})"
            )));
        }
        Some(_) => {
            let package = if scope.kind.group.is_empty() { "core" } else { first_part(&scope.kind.group) };
            format!("converting ({version}.{kind}) to ({package}.{}): unknown conversion", scope.kind.name)
        }
        None => {
            // Where in its source upstream made the scheme depends on how it was built; recorded were one place for
            // strict requests and one for the others.
            let scheme = match validation {
                FieldValidation::Strict => "pkg/runtime/scheme.go:111",
                _ => "pkg/api/legacyscheme/scheme.go:30",
            };
            format!("no kind \"{kind}\" is registered for version \"{api_version}\" in scheme \"{scheme}\"")
        }
    };
    Err(cannot_be_handled(version, kind, scope, &why))
}

/// A body that cannot be brought into the version that is kept.
pub(super) fn not_converted(scope: &Scope<'_>, error: &ConvertError) -> ApiError {
    cannot_be_handled(&scope.kind.version, &scope.kind.name, scope, &error.to_string())
}

fn first_part(group: &str) -> &str {
    group.split('.').next().unwrap_or_default()
}

fn cannot_be_handled(version: &str, kind: &str, scope: &Scope<'_>, why: &str) -> ApiError {
    ApiError::bad_request(format!(
        "{kind} in version \"{version}\" cannot be handled as a {}: {why}",
        scope.kind.name
    ))
}

/// Options may say what they are, in any group's version; they may not say that they are something else.
fn check_is_options(text: &[u8]) -> Result<(), ApiError> {
    let Ok(value) = json::parse(text) else { return Ok(()) };
    let part = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_string();
    let (api_version, kind) = (part("apiVersion"), part("kind"));
    if kind.is_empty() || kind == "DeleteOptions" {
        return Ok(());
    }
    Err(ApiError::bad_request(format!(
        "no kind \"{kind}\" is registered for version \"{api_version}\" in scheme \
         \"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27\""
    )))
}

fn yaml_or_json(bytes: &Bytes, media_type: MediaType) -> Result<Bytes, String> {
    match media_type {
        MediaType::Yaml => {
            Ok(Bytes::from(json::to_vec(&yaml::decode(bytes).map_err(|error| error.to_string())?)))
        }
        _ => Ok(bytes.clone()),
    }
}
