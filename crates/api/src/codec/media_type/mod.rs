//! Content negotiation: the form of a request's body and of its response.
//!
//! A request passes three checks: its route compares the bare types it can consume and produce
//! ([`route`]); the body's `Content-Type` names its form ([`body`]); and `Accept` is negotiated
//! with what the endpoint offers, form and transformation together ([`negotiate`]). Pure functions;
//! the error texts are upstream's.

mod accept;
mod content_type;
mod route;
#[cfg(test)]
mod tests;

pub use accept::{
    Accepted, Endpoint, MetaVersion, NotAcceptable, PageForm, Transform, choose, negotiate,
    negotiate_page, negotiate_stream,
};
pub use content_type::{PatchType, Unsupported, body};
pub use route::{RouteNotAcceptable, RouteUnsupported, consumes, produces};

use crate::gates::is_on;

/// The forms of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaType {
    Json,
    Yaml,
    Protobuf,
    /// While its feature gate is on.
    Cbor,
}

/// The feature gate of CBOR.
const CBOR: &str = "CBORServingAndStorage";

impl MediaType {
    /// All that are on, the preferred one first.
    pub fn all() -> impl Iterator<Item = MediaType> {
        let always = [MediaType::Json, MediaType::Yaml, MediaType::Protobuf];
        always
            .into_iter()
            .chain(is_on(CBOR).then_some(MediaType::Cbor))
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            MediaType::Json => "application/json",
            MediaType::Yaml => "application/yaml",
            MediaType::Protobuf => "application/vnd.kubernetes.protobuf",
            MediaType::Cbor => "application/cbor",
        }
    }

    /// The media type of a watch in this form. There is none for YAML.
    pub const fn stream(self) -> Option<&'static str> {
        match self {
            MediaType::Json => Some("application/json;stream=watch"),
            MediaType::Yaml => None,
            MediaType::Protobuf => Some("application/vnd.kubernetes.protobuf;stream=watch"),
            MediaType::Cbor => Some("application/cbor-seq"),
        }
    }

    /// The part after `application/`.
    fn subtype(self) -> &'static str {
        &self.as_str()["application/".len()..]
    }
}
