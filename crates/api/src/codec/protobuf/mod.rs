//! Kubernetes protobuf: the form of objects in upstream's etcd and for clients that request it.
//!
//! An object is an envelope, the four bytes `k8s\0` and a message with apiVersion and kind, around
//! the message of the type itself. There are no generated structs: the catalogue's wires drive both
//! directions.

mod decode;
mod encode;
#[cfg(test)]
mod tests;
mod wire;

pub use decode::decode_message;
pub use encode::encode_message;
pub use wire::WireError;

use crate::catalog::{Page, Struct};
use crate::codec::json;
use crate::value::text_of;
use crate::{Path, Text, Value};
use wire::{BackWriter, Reader};

/// The prefix of every envelope.
pub const MAGIC: &[u8; 4] = b"k8s\0";

/// Why bytes could not be decoded, or an object could not be encoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtobufError {
    #[error("empty data")]
    Empty,
    #[error("empty body")]
    EmptyBody,
    #[error(
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    )]
    NoMagic,
    #[error("{}", at(path, error))]
    Wire { path: String, error: WireError },
    #[error("{path}: not JSON: {error}")]
    NotJson {
        path: String,
        error: json::SyntaxError,
    },
    #[error("{path}: nested too deeply")]
    TooDeep { path: String },
    #[error("envelope without a kind: the data may be truncated")]
    NoKind,
    #[error("no kind {kind:?} is registered for version {api_version:?}")]
    UnknownKind { api_version: String, kind: String },
    #[error("{}", at(path, &format!("found {found}, expected {wanted}")))]
    WrongType {
        path: String,
        found: &'static str,
        wanted: &'static str,
    },
    #[error("{}", at(path, reason))]
    Invalid { path: String, reason: String },
    #[error("{}", at(path, &format!("{type_name} has no protobuf form")))]
    NoMessage { path: String, type_name: String },
    #[error("the envelope's content encoding {0:?} is not supported")]
    ContentEncoding(String),
}

fn at(path: &str, what: &impl std::fmt::Display) -> String {
    if path.is_empty() {
        what.to_string()
    } else {
        format!("{path}: {what}")
    }
}

#[cold]
fn met_at(error: WireError, path: &Path<'_>) -> Box<ProtobufError> {
    Box::new(ProtobufError::Wire {
        path: path.to_string(),
        error,
    })
}

/// Adds the path to a wire error.
trait WithPath<T> {
    fn within(self, path: &Path<'_>) -> Result<T, Box<ProtobufError>>;
}

impl<T> WithPath<T> for Result<T, WireError> {
    #[inline(always)]
    fn within(self, path: &Path<'_>) -> Result<T, Box<ProtobufError>> {
        self.map_err(|error| met_at(error, path))
    }
}

/// An opened envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope<'a> {
    pub api_version: Text,
    pub kind: Text,
    /// The message of the object itself; JSON if `content_type` is JSON.
    pub raw: &'a [u8],
    pub content_type: Text,
}

/// Parses the envelope around an object.
pub fn open(bytes: &[u8]) -> Result<Envelope<'_>, ProtobufError> {
    let message = match bytes.strip_prefix(MAGIC) {
        Some([]) => return Err(ProtobufError::EmptyBody),
        Some(message) => message,
        None if bytes.is_empty() => return Err(ProtobufError::Empty),
        None => return Err(ProtobufError::NoMagic),
    };

    let root = &Path::Root;
    let mut envelope = Envelope {
        api_version: Text::default(),
        kind: Text::default(),
        raw: b"",
        content_type: Text::default(),
    };

    let mut reader = Reader::new(message);
    while let Some((number, payload)) = reader.next().within(root)? {
        match number {
            1 => {
                let mut names = Reader::new(payload.bytes().within(root)?);
                while let Some((number, payload)) = names.next().within(root)? {
                    match number {
                        1 => envelope.api_version = text_of(payload.bytes().within(root)?),
                        2 => envelope.kind = text_of(payload.bytes().within(root)?),
                        _ => {}
                    }
                }
            }
            2 => envelope.raw = payload.bytes().within(root)?,
            3 => {
                let encoding = payload.bytes().within(root)?;
                if !encoding.is_empty() {
                    return Err(ProtobufError::ContentEncoding(
                        String::from_utf8_lossy(encoding).into_owned(),
                    ));
                }
            }
            4 => envelope.content_type = text_of(payload.bytes().within(root)?),
            _ => {}
        }
    }

    Ok(envelope)
}

impl From<Box<ProtobufError>> for ProtobufError {
    fn from(boxed: Box<ProtobufError>) -> ProtobufError {
        *boxed
    }
}

/// Decodes an enveloped object of the kind that its envelope names.
pub fn decode(bytes: &[u8], page: &Page) -> Result<Value, ProtobufError> {
    let envelope = open(bytes)?;

    // A watch event is no kind: its envelope names none.
    if envelope.api_version.is_empty() && envelope.kind.is_empty() && !envelope.raw.is_empty() {
        let event = page
            .type_named("meta.v1.WatchEvent")
            .ok_or(ProtobufError::NoKind)?;
        return decode_opened(&envelope, event);
    }

    if envelope.kind.is_empty() {
        return Err(ProtobufError::NoKind);
    }

    let kind = page
        .kind_of(&envelope.api_version, &envelope.kind)
        .ok_or_else(|| ProtobufError::UnknownKind {
            api_version: envelope.api_version.to_string(),
            kind: envelope.kind.to_string(),
        })?;

    decode_opened(&envelope, page.root(kind))
}

/// Decodes the content of a parsed envelope as the given type; apiVersion and kind come from the
/// envelope.
pub fn decode_opened(envelope: &Envelope<'_>, of: Struct<'_>) -> Result<Value, ProtobufError> {
    let mut value = decode_message(envelope.raw, of)?;
    if let Value::Object(map) = &mut value {
        for (name, text) in [
            ("apiVersion", &envelope.api_version),
            ("kind", &envelope.kind),
        ] {
            if !text.is_empty() && of.field(name).is_some() {
                map.insert(name, text.clone());
            }
        }
    }

    Ok(value)
}

/// Encodes an object of the given type in an envelope with its own apiVersion and kind.
pub fn encode(value: &Value, of: Struct<'_>) -> Result<Vec<u8>, ProtobufError> {
    let text = |name: &str| {
        value
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .as_bytes()
    };

    let mut out = BackWriter::with_capacity(2048);
    out.text(4, b"");
    out.text(3, b"");
    let end = out.len();
    encode::encode_into(&mut out, value, of)?;
    out.close(2, end);

    let end = out.len();
    out.text(2, text("kind"));
    out.text(1, text("apiVersion"));
    out.close(1, end);
    out.bytes(MAGIC);

    Ok(out.finish())
}

/// The beginning and the end of an envelope around a message of `length` bytes, for streaming
/// writers.
pub fn around(api_version: &str, kind: &str, length: usize) -> (Vec<u8>, Vec<u8>) {
    let mut after = BackWriter::with_capacity(8);
    after.text(4, b"");
    after.text(3, b"");
    let mut before = BackWriter::with_capacity(64);
    before.varint(length as u64);
    before.tag(2, wire::BYTES);

    let end = before.len();
    before.text(2, kind.as_bytes());
    before.text(1, api_version.as_bytes());
    before.close(1, end);
    before.bytes(MAGIC);

    (before.finish(), after.finish())
}

/// Encodes an element of a list with the list's tag, as it appears in the surrounding message.
pub fn encode_element(tag: u16, value: &Value, of: Struct<'_>) -> Result<Vec<u8>, ProtobufError> {
    let mut out = BackWriter::with_capacity(1024);
    let end = out.len();
    encode::encode_into(&mut out, value, of)?;
    out.close(tag, end);
    Ok(out.finish())
}

/// Encodes a watch event around an encoded object. In a stream, events have no envelope.
pub fn encode_event(change: &str, object: &[u8]) -> Vec<u8> {
    let mut out = BackWriter::with_capacity(object.len() + 64);
    // The object ends where the event does.
    let end = out.len();
    out.text(1, object);
    out.close(2, end);
    out.text(1, change.as_bytes());
    out.finish()
}
