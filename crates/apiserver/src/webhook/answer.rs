//! What a webhook answered: a tree, or an error with the text that upstream's client has for it.

use coracle_api::codec::json;
use coracle_api::go_text::Quoted;
use coracle_api::{Text, Value};
use http::{StatusCode, header};

use super::call::{Answered, CallError};

/// How much of a text is part of an error.
const MAX_TEXT: usize = 2048;

pub(super) fn read(answered: &Answered) -> Result<Value, CallError> {
    let parsed = json::parse(&answered.body);
    if !(200..=206).contains(&answered.code.as_u16()) {
        let status = parsed.ok().filter(is_failure);
        return Err(status
            .and_then(|status| of_status(&status))
            .unwrap_or_else(|| by_code(answered)));
    }

    if answered.body.is_empty() {
        let kind = content_type(answered);
        let kind = if kind.is_empty() {
            "application/json"
        } else {
            kind
        };
        return Err(unusable(format!(
            "0-length response with status code: {} and content type: {kind}",
            answered.code.as_u16()
        )));
    }

    let tree = parsed.map_err(|error| {
        unusable(format!(
            "couldn't get version/kind; json parse error: {error}"
        ))
    })?;
    if tree.as_object().is_none() {
        return Err(unusable(
            "couldn't get version/kind; json parse error: json: cannot unmarshal into Go value of \
             type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \
             \"json:\\\"kind,omitempty\\\"\" }"
                .to_owned(),
        ));
    }

    match is_status(&tree) && text(&tree, "status") != "Success" {
        true => Err(of_status(&tree).unwrap_or_else(|| by_code(answered))),
        false => Ok(tree),
    }
}

fn unusable(message: String) -> CallError {
    CallError::new(StatusCode::SERVICE_UNAVAILABLE, message)
}

fn text<'v>(tree: &'v Value, name: &str) -> &'v str {
    tree.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn is_status(tree: &Value) -> bool {
    text(tree, "kind") == "Status" && matches!(text(tree, "apiVersion"), "v1" | "")
}

fn is_failure(tree: &Value) -> bool {
    is_status(tree) && text(tree, "status") == "Failure"
}

fn of_status(status: &Value) -> Option<CallError> {
    let code = status.get("code").and_then(Value::as_int);
    let code = u16::try_from(code.unwrap_or_default()).ok()?;
    Some(CallError {
        message: text(status, "message").to_owned(),
        code,
    })
}

fn content_type(answered: &Answered) -> &str {
    let value = answered.headers.get(header::CONTENT_TYPE);
    value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

/// The error of a code whose body says nothing.
fn by_code(answered: &Answered) -> CallError {
    let kind = content_type(answered);
    let is_text = kind.is_empty() || kind.starts_with("text/");
    let said = match is_text {
        true => {
            let body = &answered.body[..answered.body.len().min(MAX_TEXT)];
            Text::new(String::from_utf8_lossy(body).trim())
        }
        false => Text::const_new("unknown"),
    };

    let message = match answered.code.as_u16() {
        400 => "the server rejected our request for an unknown reason".to_owned(),
        401 => "the server has asked for the client to provide credentials".to_owned(),
        403 | 415 => said.to_string(),
        404 => "the server could not find the requested resource".to_owned(),
        405 => "the server does not allow this method on the requested resource".to_owned(),
        406 if said.is_empty() || said == "unknown" => {
            "the server was unable to respond with a content type that the client supports"
                .to_owned()
        }
        406 => said.to_string(),
        409 => "the server reported a conflict".to_owned(),
        422 => "the server rejected our request due to an error in our request".to_owned(),
        429 => "the server has received too many requests and has asked us to try again later"
            .to_owned(),
        503 => "the server is currently unable to handle the request".to_owned(),
        504 => "the server was unable to return a response in the time allotted, but may still be \
                processing the request"
            .to_owned(),
        500.. => format!(
            "an error on the server ({}) has prevented the request from succeeding",
            Quoted(&said)
        ),
        code => format!(
            "the server responded with the status code {code} but did not return more information"
        ),
    };

    CallError::new(answered.code, message)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{HeaderMap, HeaderValue};

    use super::*;

    fn check(code: u16, kind: &'static str, body: &'static str, expected: &str) {
        let mut headers = HeaderMap::new();
        if !kind.is_empty() {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        }
        let answered = Answered {
            code: StatusCode::from_u16(code).unwrap(),
            headers,
            body: Bytes::from_static(body.as_bytes()),
        };
        let found = match read(&answered) {
            Ok(tree) => json::to_string(&tree),
            Err(error) => format!("{}: {}", error.code, error.message),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn answers_that_are_none_have_the_texts_of_upstreams_client() {
        check(200, "application/json", "{\"a\":1}", "{\"a\":1}");

        check(
            404,
            "text/plain",
            "404 page not found\n",
            "404: the server could not find the requested resource",
        );
        check(
            500,
            "text/plain; charset=utf-8",
            "it \"broke\"\n",
            "500: an error on the server (\"it \\\"broke\\\"\") has prevented the request from succeeding",
        );
        check(
            500,
            "application/json",
            "{}",
            "500: an error on the server (\"unknown\") has prevented the request from succeeding",
        );
        check(
            302,
            "text/html",
            "moved",
            "302: the server responded with the status code 302 but did not return more information",
        );
        check(
            200,
            "text/plain",
            "",
            "503: 0-length response with status code: 200 and content type: text/plain",
        );
        check(
            403,
            "application/json",
            r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"not you","code":403}"#,
            "403: not you",
        );
        check(
            200,
            "application/json",
            "<html>",
            "503: couldn't get version/kind; json parse error: invalid character '<' looking for beginning of value",
        );
    }
}
