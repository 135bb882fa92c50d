//! Which form a request is in, and which form its answer takes.
//!
//! A request passes here three times. Its route looks at the bare types it can consume and produce
//! ([`route`]); the body's `Content-Type` names its form ([`body`]); and `Accept` is weighed
//! against what the endpoint offers, form and transformation together ([`negotiate`]). Pure
//! functions; the texts of the refusals are upstream's.

mod accept;
mod content_type;
mod route;
#[cfg(test)]
mod tests;

pub use accept::{
    Accepted, Endpoint, MetaVersion, NotAcceptable, Transform, choose, negotiate, negotiate_stream,
};
pub use content_type::{PatchType, Unsupported, body};
pub use route::{RouteNotAcceptable, RouteUnsupported, consumes, produces};

/// The forms of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaType {
    Json,
    Yaml,
    Protobuf,
}

impl MediaType {
    /// All, the preferred one first.
    pub const ALL: [MediaType; 3] = [MediaType::Json, MediaType::Yaml, MediaType::Protobuf];

    pub const fn as_str(self) -> &'static str {
        match self {
            MediaType::Json => "application/json",
            MediaType::Yaml => "application/yaml",
            MediaType::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }

    /// How a watch in this form is called. There is none in YAML.
    pub const fn stream(self) -> Option<&'static str> {
        match self {
            MediaType::Json => Some("application/json;stream=watch"),
            MediaType::Yaml => None,
            MediaType::Protobuf => Some("application/vnd.kubernetes.protobuf;stream=watch"),
        }
    }

    /// What stands behind the `application/` that all have in front.
    fn subtype(self) -> &'static str {
        &self.as_str()["application/".len()..]
    }
}
