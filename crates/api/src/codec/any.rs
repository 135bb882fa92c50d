//! An object in whatever form it comes: seen, not told.

use std::sync::LazyLock;

use super::media_type::MediaType;
use super::{canonical, json, protobuf, yaml};
use crate::catalog::{BUILTIN, Page, Struct};
use crate::value::Text;
use crate::{Map, Value};

/// The form of some bytes: protobuf says so itself, JSON begins with a bracket, and everything else
/// may be YAML.
pub fn seen(bytes: &[u8]) -> MediaType {
    match bytes.trim_ascii_start().first() {
        _ if bytes.starts_with(protobuf::MAGIC) => MediaType::Protobuf,
        Some(b'{' | b'[') => MediaType::Json,
        _ => MediaType::Yaml,
    }
}

/// Why bytes are no object.
#[derive(Debug, thiserror::Error)]
pub enum AnyError {
    #[error("{}", with_place(.0))]
    Json(#[from] json::DecodeError),
    #[error("error converting YAML to JSON: {0}")]
    Yaml(#[from] yaml::Error),
    #[error("{0}")]
    Protobuf(#[from] protobuf::ProtobufError),
    #[error(
        "the value is encrypted ({provider}); only the API server that holds the key can read it"
    )]
    Encrypted { provider: String },
    #[error("there is no object in it")]
    Empty,
    /// Of JSON: YAML's own errors name their line.
    #[error("line {line}, column {column}: {error}")]
    NotJson {
        line: usize,
        column: usize,
        error: json::SyntaxError,
    },
    #[error("it is {found}, not an object")]
    NotAnObject { found: &'static str },
    #[error("the object does not say what it is: {missing} is missing")]
    NoKind { missing: &'static str },
}

fn with_place(error: &json::DecodeError) -> String {
    match error {
        json::DecodeError::Type { message, place } if !place.is_empty() => {
            format!("{place}: {message}")
        }
        other => other.to_string(),
    }
}

/// An object with what its decoder noticed.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    pub value: Value,
    pub form: MediaType,
    /// Unknown and duplicate fields.
    pub strict: Vec<String>,
    /// False: the page does not know the kind, so the value is taken as it is.
    pub known: bool,
}

/// Decodes one object. Its kind is looked up in `page`; one that is not there is read without a
/// type, which protobuf cannot be.
pub fn decode(bytes: &[u8], page: &Page) -> Result<Object, AnyError> {
    if let Some(rest) = bytes.strip_prefix(b"k8s:enc:") {
        let provider =
            String::from_utf8_lossy(rest.split(|byte| *byte == b':').next().unwrap_or_default())
                .into_owned();
        return Err(AnyError::Encrypted { provider });
    }

    match seen(bytes) {
        MediaType::Protobuf => Ok(Object {
            value: protobuf::decode(bytes, page)?,
            form: MediaType::Protobuf,
            strict: Vec::new(),
            known: true,
        }),
        MediaType::Json => match json::raw(bytes) {
            Ok(_) => typed(bytes, page, MediaType::Json),
            // Brackets open a mapping in YAML too.
            Err(error) => from_yaml(bytes, page).map_err(|_| located(bytes, error)),
        },
        MediaType::Yaml => from_yaml(bytes, page),
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
    let (api_version, kind) = said(text)?;
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

/// What a text says it is. Nothing else of it is looked at.
fn said(text: &[u8]) -> Result<(Text, Text), AnyError> {
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

    let said = json::decode(text, Some(TYPE_META.node()))?.value;
    let name = |name: &'static str| match said.get(name) {
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
    #[error("no kind {kind:?} is known for version {api_version:?}, so it has no protobuf form")]
    UnknownKind { api_version: Text, kind: Text },
    #[error("{0}")]
    Protobuf(#[from] protobuf::ProtobufError),
}

/// Writes an object as upstream would. JSON is indented for people.
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
    fn the_form_is_seen() {
        assert_eq!(seen(b"k8s\0\n"), MediaType::Protobuf);
        assert_eq!(seen(b"\n {\"a\":1}"), MediaType::Json);
        assert_eq!(seen(b"a: 1"), MediaType::Yaml);
        assert_eq!(seen(b""), MediaType::Yaml);
    }

    #[test]
    fn an_object_goes_from_any_form_into_any_other() {
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
    fn an_unknown_kind_is_read_as_it_is_and_has_no_protobuf() {
        let object = decode(
            br#"{"apiVersion":"example.com/v1","kind":"Widget","spec":{"a":1}}"#,
            &BUILTIN,
        )
        .unwrap();
        assert!(!object.known);
        let error = encode(&object.value, MediaType::Protobuf, &BUILTIN).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no kind \"Widget\" is known for version \"example.com/v1\", so it has no protobuf form"
        );
    }

    #[test]
    fn an_encrypted_value_says_so() {
        let error = decode(b"k8s:enc:aescbc:v1:key1:...", &BUILTIN).unwrap_err();
        assert!(error.to_string().contains("encrypted (aescbc)"), "{error}");
    }
}
