//! The form of a response: its media type, and whether it is pretty-printed.

use coracle_api::Value;
use coracle_api::catalog::{BUILTIN, Struct};
use coracle_api::codec::media_type::{self, Endpoint, MediaType};
use coracle_api::codec::{cbor, json, protobuf, yaml};

use super::pretty;
use crate::ApiError;
use crate::request::Query;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    pub media_type: MediaType,
    /// JSON is indented.
    pub pretty: bool,
}

impl Form {
    /// Compact JSON, which every client understands.
    pub const JSON: Form = Form {
        media_type: MediaType::Json,
        pretty: false,
    };

    /// The best that the client accepts of a document that has one shape only.
    pub fn negotiate(accept: &str, query: &Query, user_agent: &str) -> Result<Form, ApiError> {
        let accepted = media_type::negotiate(accept, Endpoint::Plain)
            .map_err(|refused| ApiError::not_acceptable(refused.to_string()))?;
        Ok(Form {
            media_type: accepted.media_type,
            pretty: accepted.pretty || pretty::is_wanted(query, user_agent),
        })
    }

    /// A tree in this form. Kinds without a protobuf form are encoded as JSON.
    pub fn document(self, document: &Value) -> (MediaType, Vec<u8>) {
        match self.media_type {
            MediaType::Json => (MediaType::Json, self.finish(typed_json(document))),
            MediaType::Yaml => (MediaType::Yaml, yaml::print(document).into_bytes()),
            MediaType::Cbor => {
                let node = kind(document).map(Struct::node);
                (MediaType::Cbor, cbor::encode(document, node))
            }
            MediaType::Protobuf => match kind(document).map(|of| protobuf::encode(document, of)) {
                Some(Ok(encoded)) => (MediaType::Protobuf, encoded),
                _ => (MediaType::Json, self.finish(typed_json(document))),
            },
        }
    }

    /// From the JSON of a document to its last byte.
    pub(super) fn finish(self, mut json: Vec<u8>) -> Vec<u8> {
        if self.pretty {
            return pretty::indent(&json);
        }
        json.push(b'\n');
        json
    }
}

/// A tree as compact JSON, the members of known kinds in upstream's order.
pub fn typed_json(document: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    match kind(document) {
        Some(of) => json::write_typed(document, of.node(), &mut out),
        None => json::write(document, &mut out),
    }
    out
}

/// The type of a document. The oldest ones do not declare their version.
fn kind(document: &Value) -> Option<Struct<'static>> {
    let map = document.as_object()?;
    let kind = BUILTIN.kind_of(map.str("apiVersion").unwrap_or("v1"), map.str("kind")?)?;
    Some(BUILTIN.root(kind))
}
