//! Decodes the body of a write into an object of the kind that the path names. Errors have
//! upstream's texts.

use bytes::Bytes;
use coracle_api::catalog::{BUILTIN, Kind, split_api_version};
use coracle_api::codec::media_type::MediaType;
use coracle_api::codec::{cbor, json, protobuf, yaml};
use coracle_api::convert::{ConvertError, is_convertible};
use coracle_api::field_error::FieldError;
use coracle_api::go_text::Quoted;
use coracle_api::{Map, Path, Text, Value};

use super::Scope;
use crate::ApiError;
use crate::definitions::Version;
use crate::request::FieldValidation;

/// A request's body and its declared media type.
#[derive(Clone, Debug)]
pub struct Body {
    pub bytes: Bytes,
    pub media_type: MediaType,
}

impl Body {
    /// The object, and warnings for the client.
    pub(super) fn object(
        &self,
        scope: &Scope<'_>,
        validation: FieldValidation,
    ) -> Result<(Value, Vec<String>), ApiError> {
        let mut complaints = Vec::new();
        let text = match self.media_type {
            MediaType::Protobuf => return self.protobuf(scope, validation),
            MediaType::Json => self.bytes.clone(),
            MediaType::Cbor => {
                let text = cbor::to_json(&self.bytes).map_err(|error| {
                    let why = format!("unable to determine group/version/kind: {error}");
                    self.unrecognized(scope, &why)
                })?;
                Bytes::from(text)
            }
            MediaType::Yaml => {
                let (value, repeated) = yaml::decode_strict(&self.bytes)
                    .map_err(|error| self.unrecognized(scope, &error.to_string()))?;
                complaints.extend(repeated.map(|keys| keys.to_string()));
                Bytes::from(json::to_vec(&value))
            }
        };

        if let Some((_, version)) = scope.custom {
            let (object, unknown) = self.defined(&text, version, scope, validation)?;
            complaints.extend(unknown);
            return check_complaints(object, complaints, validation, |why| {
                cannot_be_handled(&own(scope), scope, why)
            });
        }

        if let Some(plain) = plainly(&text, scope) {
            complaints.extend(plain.strict);
            return check_complaints(plain.value, complaints, validation, |why| {
                cannot_be_handled(&own(scope), scope, why)
            });
        }

        let declared = Declared::of(&text)
            .map_err(|why| self.unrecognized(scope, &why))?
            .or_else(scope);
        let refused = |why: &str| cannot_be_handled(&declared, scope, why);
        let (decoded, kind) = declared
            .decode(&text, scope, validation)
            .map_err(|why| refused(&why))?;
        declared.check_version(kind, scope)?;
        complaints.extend(decoded.strict);

        check_complaints(decoded.value, complaints, validation, refused)
    }

    /// The options of a delete.
    pub fn delete_options(&self) -> Result<Value, ApiError> {
        let kind = BUILTIN
            .kind("", "v1", "DeleteOptions")
            .expect("DeleteOptions are built in");
        let of = BUILTIN.root(kind);

        let bad = |error: String| ApiError::bad_request(error);
        match self.media_type {
            MediaType::Protobuf => {
                let envelope =
                    protobuf::open(&self.bytes).map_err(|error| bad(error.to_string()))?;
                protobuf::decode_opened(&envelope, of).map_err(|error| bad(error.to_string()))
            }
            MediaType::Json | MediaType::Yaml | MediaType::Cbor => {
                let value = yaml_or_json(&self.bytes, self.media_type).map_err(bad)?;
                check_is_options(&value)?;
                let decoded = json::decode(&value, Some(of.node()))
                    .map_err(|error| bad(error.to_string()))?;
                Ok(decoded.value)
            }
        }
    }

    fn protobuf(
        &self,
        scope: &Scope<'_>,
        validation: FieldValidation,
    ) -> Result<(Value, Vec<String>), ApiError> {
        let envelope = protobuf::open(&self.bytes)
            .map_err(|error| self.unrecognized(scope, &error.to_string()))?;
        let declared = Declared {
            api_version: envelope.api_version.clone(),
            kind: envelope.kind.clone(),
        }
        .or_else(scope);
        let refused = |why: &str| cannot_be_handled(&declared, scope, why);

        let kind = declared
            .kind(scope, validation)
            .map_err(|why| refused(&why))?;
        if !is_same(kind, scope.kind) {
            declared
                .convertible(kind, scope)
                .map_err(|why| refused(&why))?;
        }

        declared.check_version(kind, scope)?;
        let value = protobuf::decode_opened(&envelope, scope.of)
            .map_err(|error| refused(&error.to_string()))?;

        Ok((value, Vec::new()))
    }

    /// An object of a custom resource: its type is the declared one, and unknown fields are
    /// dropped.
    fn defined(
        &self,
        text: &[u8],
        version: &Version,
        scope: &Scope<'_>,
        validation: FieldValidation,
    ) -> Result<(Value, Vec<String>), ApiError> {
        let declared = Declared::of(text)
            .map_err(|why| self.unrecognized(scope, &why))?
            .or_else(scope);
        let refused = |why: &str| cannot_be_handled(&declared, scope, why);

        let decoded = defined(text, version, scope).map_err(|why| refused(&why))?;
        if declared.api_version != scope.kind.api_version() {
            // The fields of another version are not known.
            let warnings = match validation {
                FieldValidation::Warn => unknown_members(&decoded.value),
                _ => Vec::new(),
            };
            return Err(declared.of_another_version(scope).after(warnings));
        }

        if declared.kind != scope.kind.name {
            return Err(declared.of_another_kind(&decoded.value, scope));
        }

        Ok((decoded.value, decoded.strict))
    }

    fn unrecognized(&self, scope: &Scope<'_>, why: &str) -> ApiError {
        let kind = &scope.kind.name;
        ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): {why} ({})",
            self.dump()
        ))
    }

    /// The beginning of the body, as its message shows it: JSON as text, everything else in
    /// hexadecimal.
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

/// The text of a custom resource's object as its schema knows it.
pub(super) fn defined(
    text: &[u8],
    version: &Version,
    scope: &Scope<'_>,
) -> Result<json::Decoded, String> {
    // Upstream reads metadata apart from the rest.
    let decoded = json::decode(text, Some(scope.of.node()));
    let mut decoded = decoded.map_err(|error| error.to_string().replacen(".metadata.", ".", 1))?;

    let unknown = version
        .admit(&mut decoded.value)
        .map_err(|error| error.to_string())?;
    decoded.strict.extend(
        unknown
            .iter()
            .map(|field| format!("unknown field {}", Quoted(field))),
    );

    Ok(decoded)
}

fn unknown_members(object: &Value) -> Vec<String> {
    let members = object.as_object().into_iter().flat_map(Map::keys);
    let unknown = members.filter(|name| !matches!(*name, "apiVersion" | "kind" | "metadata"));
    unknown
        .map(|name| format!("unknown field {}", Quoted(name)))
        .collect()
}

/// The object of a text that declares exactly the type that the path names, as nearly all do:
/// decoded in one pass. For all others the declared type has to be known first, if only for the
/// error text.
fn plainly(text: &[u8], scope: &Scope<'_>) -> Option<json::Decoded> {
    let decoded = json::decode(text, Some(scope.of.node())).ok()?;
    let declares =
        |name: &str, what: &str| decoded.value.get(name).and_then(Value::as_str) == Some(what);
    (declares("kind", &scope.kind.name) && declares("apiVersion", &scope.kind.api_version()))
        .then_some(decoded)
}

/// Returns an object with its complaints as warnings, or refuses it, as field validation demands.
fn check_complaints(
    object: Value,
    complaints: Vec<String>,
    validation: FieldValidation,
    refused: impl FnOnce(&str) -> ApiError,
) -> Result<(Value, Vec<String>), ApiError> {
    match validation {
        FieldValidation::Ignore => Ok((object, Vec::new())),
        FieldValidation::Strict if !complaints.is_empty() => Err(refused(&format!(
            "strict decoding error: {}",
            complaints.join(", ")
        ))),
        _ => Ok((object, complaints.into_iter().flat_map(lines).collect())),
    }
}

/// There is a warning for each duplicate key in YAML; an error has all of them at once.
fn lines(complaint: String) -> Vec<String> {
    match complaint.strip_prefix("yaml: unmarshal errors:\n") {
        Some(keys) => keys.lines().map(|line| line.trim().to_owned()).collect(),
        None => vec![complaint],
    }
}

/// The type that a text declares; empty where it declares none.
pub(super) struct Declared {
    pub(super) api_version: Text,
    pub(super) kind: Text,
}

impl Declared {
    pub(super) fn of(text: &[u8]) -> Result<Declared, String> {
        let parse_error =
            |error: &str| format!("couldn't get version/kind; json parse error: {error}");
        json::raw(text).map_err(|error| parse_error(&error.to_string()))?;

        let untyped = json::parse(text).map_err(|error| parse_error(&error.to_string()))?;
        if untyped.is_null() {
            return Ok(Declared {
                api_version: Text::default(),
                kind: Text::default(),
            });
        }

        let Some(map) = untyped.as_object() else {
            let found = untyped.type_name();
            return Err(parse_error(&format!(
                "json: cannot unmarshal {found} into Go value of type struct {{ APIVersion string \
                 \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
            )));
        };

        for name in ["apiVersion", "kind"] {
            if let Some(found) = map
                .get(name)
                .filter(|found| !found.is_null() && found.as_str().is_none())
            {
                let found = found.type_name();
                return Err(parse_error(&format!(
                    "json: cannot unmarshal {found} into Go struct field .{name} of type string"
                )));
            }
        }

        let text = |name: &str| map.str(name).unwrap_or_default();
        let api_version = text("apiVersion");
        if api_version.matches('/').count() > 1 {
            return Err(format!("unexpected GroupVersion string: {api_version}"));
        }

        Ok(Declared {
            api_version: Text::new(api_version),
            kind: Text::new(text("kind")),
        })
    }

    /// Empty names are filled in from the path.
    fn or_else(self, scope: &Scope<'_>) -> Declared {
        let filled = |given: Text, own: Text| if given.is_empty() { own } else { given };

        // Evictions are still taken in their first version, which is not served otherwise.
        let given = match (self.api_version.as_str(), scope.kind.name.as_str()) {
            ("policy/v1beta1", "Eviction") => Text::default(),
            _ => self.api_version,
        };
        Declared {
            api_version: filled(given, scope.kind.api_version()),
            kind: filled(self.kind, scope.kind.name.clone()),
        }
    }

    /// Whether it declares the type that the path names.
    pub(super) fn is_of(&self, scope: &Scope<'_>) -> Result<(), String> {
        match self.kind == scope.kind.name && self.api_version == scope.kind.api_version() {
            true => Ok(()),
            false => Err(format!(
                "no kind \"{}\" is registered for version \"{}\"",
                self.kind, self.api_version
            )),
        }
    }

    fn version(&self) -> &str {
        split_api_version(&self.api_version).1
    }

    /// The object of a text, decoded as the declared kind, which converts to the one that the path
    /// names.
    pub(super) fn decode<'s>(
        &self,
        text: &[u8],
        scope: &Scope<'s>,
        validation: FieldValidation,
    ) -> Result<(json::Decoded, &'s Kind), String> {
        let kind = self.kind(scope, validation)?;
        let own = is_same(kind, scope.kind);
        let of = if own { scope.of } else { BUILTIN.root(kind) };
        let decoded = json::decode(text, Some(of.node())).map_err(|error| error.to_string())?;
        if !own {
            self.convertible(kind, scope)?;
        }
        Ok((decoded, kind))
    }

    fn kind<'s>(&self, scope: &Scope<'s>, validation: FieldValidation) -> Result<&'s Kind, String> {
        if self.api_version == scope.kind.api_version() && self.kind == scope.kind.name {
            return Ok(scope.kind);
        }

        BUILTIN
            .kind_of(&self.api_version, &self.kind)
            .ok_or_else(|| {
                // The position in upstream's source that the error has depends on its build;
                // recorded were one for strict requests and one for the others.
                let scheme = match validation {
                    FieldValidation::Strict => "pkg/runtime/scheme.go:111",
                    _ => "pkg/api/legacyscheme/scheme.go:30",
                };

                format!(
                    "no kind \"{}\" is registered for version \"{}\" in scheme \"{scheme}\"",
                    self.kind, self.api_version
                )
            })
    }

    fn convertible(&self, kind: &Kind, scope: &Scope<'_>) -> Result<(), String> {
        if is_convertible(kind, scope.kind) {
            return Ok(());
        }

        let package = if scope.kind.group.is_empty() {
            "core"
        } else {
            first_part(&scope.kind.group)
        };

        let (version, wanted) = (self.version(), &scope.kind.name);
        Err(format!(
            "converting ({version}.{}) to ({package}.{wanted}): unknown conversion",
            self.kind
        ))
    }

    /// A body has the version of the path.
    fn check_version(&self, kind: &Kind, scope: &Scope<'_>) -> Result<(), ApiError> {
        if is_same(kind, scope.kind) {
            return Ok(());
        }
        Err(self.of_another_version(scope))
    }

    fn of_another_version(&self, scope: &Scope<'_>) -> ApiError {
        let (given, wanted) = (&self.api_version, scope.kind.api_version());
        ApiError::bad_request(format!(
            "the API version in the data ({given}) does not match the expected API version ({wanted})"
        ))
    }

    /// Upstream's error names the declared type of the object.
    fn of_another_kind(&self, object: &Value, scope: &Scope<'_>) -> ApiError {
        let detail = format!("must be {}", scope.kind.name);
        let error = FieldError::invalid_str(&Path::Root.field("kind"), &self.kind, detail);
        ApiError::invalid_kind(
            &scope.kind.group,
            &self.kind,
            object.meta().name(),
            &error.into(),
        )
    }
}

pub(super) fn is_same(one: &Kind, other: &Kind) -> bool {
    one.name == other.name && one.version == other.version && one.group == other.group
}

/// A body that cannot be converted to the storage version.
pub(super) fn not_converted(scope: &Scope<'_>, error: &ConvertError) -> ApiError {
    cannot_be_handled(&own(scope), scope, &error.to_string())
}

/// What the path names.
fn own(scope: &Scope<'_>) -> Declared {
    Declared {
        api_version: scope.kind.api_version(),
        kind: scope.kind.name.clone(),
    }
}

fn first_part(group: &str) -> &str {
    group.split('.').next().unwrap_or_default()
}

fn cannot_be_handled(declared: &Declared, scope: &Scope<'_>, why: &str) -> ApiError {
    ApiError::bad_request(format!(
        "{} in version \"{}\" cannot be handled as a {}: {why}",
        declared.kind,
        declared.version(),
        scope.kind.name
    ))
}

/// Options may declare their type, in any group's version; they may not declare another one.
fn check_is_options(text: &[u8]) -> Result<(), ApiError> {
    let Ok(value) = json::parse(text) else {
        return Ok(());
    };
    let part = |name: &str| {
        value
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_string()
    };

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
        MediaType::Yaml => Ok(Bytes::from(json::to_vec(
            &yaml::decode(bytes).map_err(|error| error.to_string())?,
        ))),
        MediaType::Cbor => cbor::to_json(bytes)
            .map(Bytes::from)
            .map_err(|error| error.to_string()),
        _ => Ok(bytes.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_warned_of_every_key_that_is_there_twice() {
        let text = "yaml: unmarshal errors:\n  line 2: key \"a\" already set in map\n  line 4: key \"b\" already set in map";
        let keys = [
            "line 2: key \"a\" already set in map",
            "line 4: key \"b\" already set in map",
        ];
        assert_eq!(lines(text.to_owned()), keys);
        assert_eq!(
            lines("unknown field \"x\"".to_owned()),
            ["unknown field \"x\""]
        );
    }
}
