//! Error answers of a server (`Status`).

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use coracle_api::Value;
use coracle_api::codec::json;
use http::{HeaderMap, StatusCode, header};

/// How much of a body that is not a Status is included.
const MAX_TEXT: usize = 2048;

/// An error answer of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// The HTTP status code.
    pub code: u16,
    /// The machine-readable reason, as upstream defines them: `NotFound`, `Conflict`, `Expired` …
    pub reason: String,
    /// The message.
    pub message: String,
    /// The object's name, if any.
    pub name: String,
    /// The resource.
    pub kind: String,
    /// The causes.
    pub causes: Vec<Cause>,
    /// When to retry.
    pub retry_after: Option<Duration>,
    /// The continue token for a list whose version is expired.
    pub continue_token: String,
}

/// A cause of an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    /// The type: `FieldValueInvalid`, `NamespaceTerminating` …
    pub reason: String,
    /// The message.
    pub message: String,
    /// The field in the object.
    pub field: String,
}

impl Status {
    /// A status created by this program.
    pub fn new(code: StatusCode, reason: &str, message: impl Into<String>) -> Status {
        Status {
            code: code.as_u16(),
            reason: reason.to_string(),
            message: message.into(),
            ..Status::default()
        }
    }

    /// Whether it has a cause of this type.
    pub fn has_cause(&self, reason: &str) -> bool {
        self.causes.iter().any(|cause| cause.reason == reason)
    }

    /// Reads a `Status` object; `None`: the object is another kind.
    pub fn from_value(value: &Value) -> Option<Status> {
        let object = value.as_object()?;
        if object.str("kind") != Some("Status") {
            return None;
        }

        let details = object.get("details").and_then(Value::as_object);
        let text = |name: &str| {
            details
                .and_then(|details| details.str(name))
                .unwrap_or_default()
                .to_string()
        };

        let seconds = details
            .map(|details| details.int("retryAfterSeconds"))
            .unwrap_or_default();
        let causes = details
            .map(|details| details.items("causes"))
            .unwrap_or_default();

        Some(Status {
            code: u16::try_from(object.int("code")).unwrap_or_default(),
            reason: object.text("reason").to_string(),
            message: object.text("message").to_string(),
            name: text("name"),
            kind: text("kind"),
            causes: causes
                .iter()
                .filter_map(Value::as_object)
                .map(cause)
                .collect(),
            retry_after: u64::try_from(seconds)
                .ok()
                .filter(|seconds| *seconds > 0)
                .map(Duration::from_secs),
            continue_token: value
                .at(&["metadata", "continue"])
                .and_then(Value::as_str)
                .unwrap_or_default()
                .into(),
        })
    }

    /// The status of an error answer, whatever its body is.
    pub(crate) fn of_answer(code: StatusCode, headers: &HeaderMap, body: &Bytes) -> Status {
        let parsed = json::parse(body)
            .ok()
            .and_then(|value| Status::from_value(&value));
        let mut status = parsed.unwrap_or_else(|| generic(code, body));
        status.code = code.as_u16();
        let seconds = headers
            .get(header::RETRY_AFTER)
            .and_then(|value| value.to_str().ok()?.parse().ok());
        status.retry_after = status.retry_after.or(seconds.map(Duration::from_secs));
        status
    }
}

fn cause(cause: &coracle_api::Map) -> Cause {
    Cause {
        reason: cause.text("reason").to_string(),
        message: cause.text("message").to_string(),
        field: cause.text("field").to_string(),
    }
}

/// The status of an answer without a `Status` body, by its code.
fn generic(code: StatusCode, body: &Bytes) -> Status {
    let reason = match code.as_u16() {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        405 => "MethodNotAllowed",
        406 => "NotAcceptable",
        409 => "Conflict",
        410 => "Expired",
        413 => "RequestEntityTooLarge",
        415 => "UnsupportedMediaType",
        422 => "Invalid",
        429 => "TooManyRequests",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        500.. => "InternalError",
        _ => "",
    };

    let text = String::from_utf8_lossy(&body[..body.len().min(MAX_TEXT)])
        .trim()
        .to_string();
    let message = if text.is_empty() {
        format!("the server answered {code}")
    } else {
        text
    };

    Status::new(code, reason, message)
}

impl fmt::Display for Status {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_with_its_causes() {
        let body = r#"{"kind":"Status","code":403,"reason":"Forbidden","message":"no","details":{"name":"n","kind":"pods",
            "causes":[{"reason":"NamespaceTerminating","message":"m","field":"metadata.namespace"}],"retryAfterSeconds":3}}"#;
        let status =
            Status::of_answer(StatusCode::FORBIDDEN, &HeaderMap::new(), &Bytes::from(body));
        assert_eq!(
            (status.code, status.reason.as_str(), status.message.as_str()),
            (403, "Forbidden", "no")
        );
        assert!(status.has_cause("NamespaceTerminating"));
        assert_eq!(status.retry_after, Some(Duration::from_secs(3)));
    }

    #[test]
    fn an_answer_without_a_status_body_gets_one_by_its_code() {
        let mut headers = HeaderMap::new();
        headers.insert(header::RETRY_AFTER, "2".parse().unwrap());
        let body = Bytes::from("x".repeat(5000));
        let status = Status::of_answer(StatusCode::SERVICE_UNAVAILABLE, &headers, &body);
        assert_eq!(
            (status.code, status.reason.as_str(), status.message.len()),
            (503, "ServiceUnavailable", 2048)
        );
        assert_eq!(status.retry_after, Some(Duration::from_secs(2)));
    }
}
