//! HTTP responses: objects, lists, streams and errors.

use std::sync::Arc;

use bytes::Bytes;
use coracle_api::Value;
use coracle_kinds::warnings;
use futures_util::stream;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper::body::{Body as _, Frame};
use tracing::warn;

use crate::ApiError;
use crate::byte_budget::Reservation;
use crate::render::{Form, LongList};

/// A body fails midway only where it is forwarded from a backend.
pub type Body = UnsyncBoxBody<Bytes, BrokenOff>;
pub type BrokenOff = Box<dyn std::error::Error + Send + Sync>;
pub type Answer = Response<Body>;

pub fn bytes(status: StatusCode, content_type: &str, content: impl Into<Bytes>) -> Answer {
    let mut response = Response::new(
        Full::new(content.into())
            .map_err(|never| match never {})
            .boxed_unsync(),
    );
    *response.status_mut() = status;

    let headers = response.headers_mut();
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("no-cache, private"),
    );

    if let Ok(value) = HeaderValue::from_str(content_type) {
        headers.insert(header::CONTENT_TYPE, value);
    }

    response
}

pub fn text(status: StatusCode, content: &str) -> Answer {
    bytes(status, "text/plain; charset=utf-8", content.to_string())
}

/// The response for an unknown path.
pub fn no_such_page() -> Answer {
    let mut answer = text(StatusCode::NOT_FOUND, "404 page not found\n");
    answer.headers_mut().insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    answer
}

/// Whether the client takes compressed content.
pub fn takes_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING);
    let mut codings = values
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));

    codings.any(|coding| {
        let (name, quality) = coding.split_once(';').unwrap_or((coding, ""));
        let refused = quality
            .trim()
            .strip_prefix("q=")
            .is_some_and(|q| q.trim().parse() == Ok(0.0_f32));
        name.trim().eq_ignore_ascii_case("gzip") && !refused
    })
}

/// A long body, encoded in chunks as the client reads it.
pub fn pieces(content_type: &str, pieces: LongList, gzip: bool) -> Answer {
    let frames = pieces.map(|piece| match piece {
        Ok(piece) => Ok(Frame::data(piece)),
        Err(error) => {
            warn!(error = %error.message, "list response aborted");
            Err(BrokenOff::from(error.message))
        }
    });
    let frames = stream::iter(frames);

    let mut response = bytes(StatusCode::OK, content_type, Bytes::new())
        .map(|_| StreamBody::new(frames).boxed_unsync());
    if gzip {
        response
            .headers_mut()
            .insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        response
            .headers_mut()
            .insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    }

    response
}

/// A status and nothing else.
pub fn empty(status: StatusCode) -> Answer {
    let mut response = bytes(status, "", Bytes::new());
    response.headers_mut().remove(header::CONTENT_TYPE);
    response
}

/// The response to HEAD: that of GET without the body, which HTTP/2 would send otherwise.
pub fn without_body(mut answer: Answer) -> Answer {
    if let Some(length) = answer.body().size_hint().exact() {
        answer
            .headers_mut()
            .entry(header::CONTENT_LENGTH)
            .or_insert(HeaderValue::from(length));
    }
    answer.map(|_| Empty::new().map_err(|never| match never {}).boxed_unsync())
}

/// A tree in the form the client accepts.
pub fn value(status: StatusCode, value: &Value, form: Form) -> Answer {
    let (media_type, content) = form.document(value);
    bytes(status, media_type.as_str(), content)
}

pub fn error(error: &ApiError, form: Form) -> Answer {
    let mut answer = value(error.code, &error.to_status(), form);
    if let Some(seconds) = error.retry_after {
        answer
            .headers_mut()
            .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    with_warnings(answer, &error.warnings)
}

/// Puts a warning before those that are there.
pub fn with_first_warning(mut answer: Answer, warning: &str) -> Answer {
    let later: Vec<HeaderValue> = answer
        .headers()
        .get_all(header::WARNING)
        .iter()
        .cloned()
        .collect();

    answer.headers_mut().remove(header::WARNING);
    let mut answer = with_warnings(answer, &[warning.to_owned()]);
    for warning in later {
        answer.headers_mut().append(header::WARNING, warning);
    }

    answer
}

/// Keeps bytes reserved until the client has read the response.
pub(crate) fn holding(mut answer: Answer, reservation: Arc<Reservation>) -> Answer {
    answer.extensions_mut().insert(reservation);
    answer
}

/// What the client should know, whatever became of its request.
pub fn with_warnings(mut answer: Answer, warnings: &[String]) -> Answer {
    for warning in warnings::sent(warnings) {
        let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            answer.headers_mut().append(header::WARNING, value);
        }
    }
    answer
}
