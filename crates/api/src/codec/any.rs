//! Decodes and encodes an object in any form, detected from its bytes.

use std::sync::LazyLock;

use super::media_type::MediaType;
use super::{canonical, cbor, json, protobuf, yaml};
use crate::catalog::{BUILTIN, Page, Struct};
use crate::value::Text;
use crate::{Map, Value};

/// Detects the form of some bytes: protobuf and CBOR have magic prefixes, JSON begins with a bracket, and
/// everything else may be YAML.
pub fn detect(bytes: &[u8]) -> MediaType {
    match bytes.trim_ascii_start().first() {
        _ if bytes.starts_with(protobuf::MAGIC) => MediaType::Protobuf,
        _ if bytes.starts_with(cbor::MAGIC) => MediaType::Cbor,
        Some(b'{' | b'[') => MediaType::Json,
        _ => MediaType::Yaml,
    }
}

/// Why bytes are no object.
#[derive(Debug, thiserror::Error)]
pub enum AnyError {
    #[error("{}", with_path(.0))]
    Json(#[from] json::DecodeError),
    #[error("error converting YAML to JSON: {0}")]
    Yaml(#[from] yaml::Error),
    #[error("{0}")]
    Protobuf(#[from] protobuf::ProtobufError),
    #[error("{0}")]
    Cbor(#[from] cbor::CborError),
    #[error("the value is encrypted ({provider}); only an API server with the key can decrypt it")]
    Encrypted { provider: String },
    #[error("no object found")]
    Empty,
    /// For JSON only: YAML's own errors contain their line.
    #[error("line {line}, column {column}: {error}")]
    NotJson {
        line: usize,
        column: usize,
        error: json::SyntaxError,
    },
    #[error("expected an object, found {found}")]
    NotAnObject { found: &'static str },
    #[error("object without {missing}")]
    NoKind { missing: &'static str },
}

fn with_path(error: &json::DecodeError) -> String {
    match error {
        json::DecodeError::Type { message, path } if !path.is_empty() => {
            format!("{path}: {message}")
        }
        other => other.to_string(),
    }
}

/// A decoded object and its decoder's findings.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    pub value: Value,
    pub form: MediaType,
    /// Unknown and duplicate fields.
    pub strict: Vec<String>,
    /// False: the kind is not in the page, so the value was decoded without a type.
    pub known: bool,
}

/// Decodes one object. Its kind is looked up in `page`; an unknown kind is decoded without a type,
/// which protobuf does not allow.
pub fn decode(bytes: &[u8], page: &Page) -> Result<Object, AnyError> {
    if let Some(rest) = bytes.strip_prefix(b"k8s:enc:") {
        let provider =
            String::from_utf8_lossy(rest.split(|byte| *byte == b':').next().unwrap_or_default())
                .into_owned();
        return Err(AnyError::Encrypted { provider });
    }

    match detect(bytes) {
        MediaType::Protobuf => Ok(Object {
            value: protobuf::decode(bytes, page)?,
            form: MediaType::Protobuf,
            strict: Vec::new(),
            known: true,
        }),
        MediaType::Json => match json::raw(bytes) {
            Ok(_) => typed(bytes, page, MediaType::Json),
            // A bracket may begin a YAML mapping too.
            Err(error) => from_yaml(bytes, page).map_err(|_| located(bytes, error)),
        },
        MediaType::Yaml => from_yaml(bytes, page),
        MediaType::Cbor => typed(&cbor::to_json(bytes)?, page, MediaType::Cbor),
    }
}

fn from_yaml(bytes: &[u8], page: &Page) -> Result<Object, AnyError> {
    let (value, duplicates) = yaml::decode_strict(bytes)?;
    if value.is_null() {
        return Err(AnyError::Empty);
    }
    let mut object = typed(&json::to_vec(&value), page, MediaType::Yaml)?;
    object
        .strict
        .extend(duplicates.map(|keys| keys.to_string()));
    Ok(object)
}

fn located(text: &[u8], error: json::SyntaxError) -> AnyError {
    let before = &text[..json::fault_at(text).unwrap_or_default().min(text.len())];
    let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
    let column = 1 + before
        .iter()
        .rev()
        .take_while(|byte| **byte != b'\n')
        .count();

    AnyError::NotJson {
        line,
        column,
        error,
    }
}

fn typed(text: &[u8], page: &Page, form: MediaType) -> Result<Object, AnyError> {
    let (api_version, kind) = api_version_and_kind(text)?;
    let Some(kind) = page.kind_of(&api_version, &kind) else {
        let value = json::decode(text, None)?.value;
        return Ok(Object {
            value,
            form,
            strict: Vec::new(),
            known: false,
        });
    };

    let decoded = json::decode(text, Some(page.root(kind).node()))?;
    Ok(Object {
        value: decoded.value,
        form,
        strict: decoded.strict,
        known: true,
    })
}

/// The apiVersion and kind of a text. Nothing else is read.
fn api_version_and_kind(text: &[u8]) -> Result<(Text, Text), AnyError> {
    static TYPE_META: LazyLock<Struct<'static>> = LazyLock::new(|| {
        BUILTIN
            .type_named("runtime.TypeMeta")
            .expect("the catalogue has it")
    });

    match json::raw(text)
        .map_err(json::DecodeError::Syntax)?
        .type_name()
    {
        "object" => {}
        found => return Err(AnyError::NotAnObject { found }),
    }

    let api_version_and_kind = json::decode(text, Some(TYPE_META.node()))?.value;
    let name = |name: &'static str| match api_version_and_kind.get(name) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text.clone()),
        _ => Err(AnyError::NoKind { missing: name }),
    };

    Ok((name("apiVersion")?, name("kind")?))
}

fn kind_of(value: &Value) -> Option<(&str, &str)> {
    let map: &Map = value.as_object()?;
    Some((map.str("apiVersion")?, map.str("kind")?))
}

/// Why an object cannot be written in a form.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    #[error(
        "cannot encode as protobuf: no kind {kind:?} is registered for version {api_version:?}"
    )]
    UnknownKind { api_version: Text, kind: Text },
    #[error("{0}")]
    Protobuf(#[from] protobuf::ProtobufError),
}

/// Encodes an object as upstream would. JSON is indented.
pub fn encode(object: &Value, form: MediaType, page: &Page) -> Result<Vec<u8>, EncodeError> {
    let (api_version, kind) = kind_of(object).unwrap_or_default();
    let known = page.kind_of(api_version, kind).map(|kind| page.root(kind));
    let mut value = object.clone();
    if let Some(of) = known {
        canonical::canonicalize(&mut value, of.node());
    }

    match (form, known) {
        (MediaType::Json, _) => Ok(json::to_pretty(&value).into_bytes()),
        (MediaType::Yaml, _) => Ok(yaml::print(&value).into_bytes()),
        (MediaType::Cbor, of) => Ok(cbor::encode(&value, of.map(Struct::node))),
        (MediaType::Protobuf, Some(of)) => Ok(protobuf::encode(&value, of)?),
        (MediaType::Protobuf, None) => Err(EncodeError::UnknownKind {
            api_version: Text::new(api_version),
            kind: Text::new(kind),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::BUILTIN;

    #[test]
    fn the_form_is_detected() {
        assert_eq!(detect(b"k8s\0\n"), MediaType::Protobuf);
        assert_eq!(detect(b"\n {\"a\":1}"), MediaType::Json);
        assert_eq!(detect(b"a: 1"), MediaType::Yaml);
        assert_eq!(detect(b""), MediaType::Yaml);
    }

    #[test]
    fn an_object_converts_from_any_form_to_any_other() {
        let yaml = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: v\n";
        let object = decode(yaml, &BUILTIN).unwrap();
        assert_eq!(
            (object.form, object.known, object.strict.len()),
            (MediaType::Yaml, true, 0)
        );
        for form in [MediaType::Json, MediaType::Protobuf, MediaType::Yaml] {
            let bytes = encode(&object.value, form, &BUILTIN).unwrap();
            let again = decode(&bytes, &BUILTIN).unwrap();
            assert_eq!((again.form, again.value), (form, object.value.clone()));
        }
    }

    #[test]
    fn an_unknown_kind_is_decoded_without_a_type_and_has_no_protobuf() {
        let object = decode(
            br#"{"apiVersion":"example.com/v1","kind":"Widget","spec":{"a":1}}"#,
            &BUILTIN,
        )
        .unwrap();
        assert!(!object.known);
        let error = encode(&object.value, MediaType::Protobuf, &BUILTIN).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot encode as protobuf: no kind \"Widget\" is registered for version \"example.com/v1\""
        );
    }

    #[test]
    fn an_encrypted_value_is_reported() {
        let error = decode(b"k8s:enc:aescbc:v1:key1:...", &BUILTIN).unwrap_err();
        assert!(error.to_string().contains("encrypted (aescbc)"), "{error}");
    }
}
