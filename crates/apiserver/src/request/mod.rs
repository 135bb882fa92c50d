//! A parsed request: path, query and options. Pure.

mod info;
mod options;
mod query;
mod verb;

use std::net::IpAddr;
use std::ops::Deref;

use bytes::Bytes;
use http::HeaderValue;
use http::header::{self, HeaderName};
use http::request::Parts;

pub use info::{RequestInfo, Target};
pub use options::{
    DeleteOptions, FieldValidation, ListOptions, Propagation, VersionMatch, WriteOptions,
};
pub use query::Query;
pub(crate) use query::decode_path;
pub use verb::Verb;

use coracle_kinds::Caller;

/// Where the connection of a request comes from: an extension of its head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientAddress(pub(crate) IpAddr);

/// An authenticated and authorized request, without its body.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    pub head: &'a Parts,
    pub info: &'a RequestInfo,
    pub query: &'a Query,
    pub caller: &'a Caller,
    /// What the logs of all servers call it.
    pub audit_id: &'a HeaderValue,
}

impl<'a> Request<'a> {
    /// A header as text; empty where it is absent or not text.
    pub fn header(&self, name: HeaderName) -> &'a str {
        let value = self.head.headers.get(name);
        value
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }

    pub fn accept(&self) -> &'a str {
        self.header(header::ACCEPT)
    }

    pub fn content_type(&self) -> &'a str {
        self.header(header::CONTENT_TYPE)
    }

    pub fn user_agent(&self) -> &'a str {
        self.header(header::USER_AGENT)
    }
}

/// A request whose path names a resource.
#[derive(Clone, Copy)]
pub struct ResourceRequest<'a> {
    /// The target of `Deref`.
    pub request: Request<'a>,
    pub target: &'a Target,
}

impl<'a> Deref for ResourceRequest<'a> {
    type Target = Request<'a>;

    fn deref(&self) -> &Request<'a> {
        &self.request
    }
}

/// The body of a request, over any transport.
pub trait RequestBody:
    http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static
{
}
impl<B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static> RequestBody for B {}

pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;
