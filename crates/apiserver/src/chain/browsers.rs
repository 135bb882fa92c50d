//! Headers for browsers: which pages of other origins may read answers, and that this server is to be
//! reached by HTTPS only.

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ORIGIN, STRICT_TRANSPORT_SECURITY,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use regex::Regex;

use crate::answer::{self, Answer};

/// What browsers are told.
#[derive(Clone, Debug, Default)]
pub struct Browsers {
    /// Patterns of the origins whose pages may read answers.
    pub origins: Vec<Regex>,
    /// Of `Strict-Transport-Security`.
    pub transport: Option<HeaderValue>,
}

const METHODS: HeaderValue = HeaderValue::from_static("POST, GET, OPTIONS, PUT, DELETE, PATCH");
const HEADERS: HeaderValue = HeaderValue::from_static(
    "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since",
);

impl Browsers {
    /// The origin of a request, if its pages may read the answer.
    pub(super) fn origin(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        if self.origins.is_empty() {
            return None;
        }
        let origin = headers.get(ORIGIN)?;
        let text = origin.to_str().ok().filter(|text| !text.is_empty())?;
        let mut patterns = self.origins.iter();
        patterns
            .any(|pattern| pattern.is_match(text))
            .then(|| origin.clone())
    }

    /// The answer to a browser that asks before it sends a request of another origin.
    pub(super) fn preflight(method: &Method, origin: Option<&HeaderValue>) -> Option<Answer> {
        let asks = origin.is_some() && *method == Method::OPTIONS;
        asks.then(|| answer::text(StatusCode::NO_CONTENT, ""))
    }

    /// Adds the headers of an answer to a request of `origin`.
    pub(super) fn tell(&self, origin: Option<HeaderValue>, headers: &mut HeaderMap) {
        if let Some(transport) = &self.transport {
            headers
                .entry(STRICT_TRANSPORT_SECURITY)
                .or_insert_with(|| transport.clone());
        }
        if let Some(origin) = origin {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HEADERS);
            headers.insert(
                ACCESS_CONTROL_EXPOSE_HEADERS,
                HeaderValue::from_static("Date"),
            );
            headers.insert(
                ACCESS_CONTROL_ALLOW_CREDENTIALS,
                HeaderValue::from_static("true"),
            );
        }
    }
}
