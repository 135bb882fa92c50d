//! HTTP responses.

use std::io;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::body::Body as _;

pub type Body = UnsyncBoxBody<Bytes, io::Error>;
pub type Answer = Response<Body>;

pub fn text(status: StatusCode, text: impl Into<String>) -> Answer {
    with_type(status, "text/plain; charset=utf-8", text.into())
}

pub fn json(content: impl Into<Bytes>) -> Answer {
    with_type(StatusCode::OK, "application/json", content)
}

pub fn with_type(
    status: StatusCode,
    content_type: &'static str,
    content: impl Into<Bytes>,
) -> Answer {
    let mut answer = Response::new(full(content));
    *answer.status_mut() = status;
    answer
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer
}

/// A response without a body.
pub fn empty(head: Response<()>) -> Answer {
    head.map(|()| Empty::new().map_err(|never| match never {}).boxed_unsync())
}

/// The response to HEAD: that of GET without the body, which HTTP/2 would otherwise send.
pub fn without_body(mut answer: Answer) -> Answer {
    if let Some(length) = answer.body().size_hint().exact() {
        answer
            .headers_mut()
            .entry(header::CONTENT_LENGTH)
            .or_insert(HeaderValue::from(length));
    }
    let (head, _) = answer.into_parts();
    empty(Response::from_parts(head, ()))
}

/// A head with a text body.
pub fn with_text(head: Response<()>, text: impl Into<String>) -> Answer {
    let mut answer = head.map(|()| full(text.into()));
    let content_type = HeaderValue::from_static("text/plain; charset=utf-8");
    answer
        .headers_mut()
        .insert(header::CONTENT_TYPE, content_type);
    answer
}

fn full(content: impl Into<Bytes>) -> Body {
    Full::new(content.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}
