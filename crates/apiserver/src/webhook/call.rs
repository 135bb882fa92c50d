//! One call of a webhook.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use coracle_api::Value;
use coracle_api::go_text::Quoted;
use coracle_api::time::Timestamp;
use coracle_client::config::Kubeconfig;
use coracle_client::transport::{Dialing, Https, Transport};
use coracle_client::{Config, World};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::time::Instant;

use super::answer;
use crate::network_errors::{DEADLINE, transport_in_go};

/// A server that asks for it is called again this often.
const MAX_RETRIES: usize = 10;

/// The client of one webhook.
pub struct Client {
    pub(super) transport: Https,
    /// `https://host:port`.
    pub(super) url: String,
    /// Absolute, without a slash at the end.
    pub(super) path: String,
    pub(super) now: fn() -> Timestamp,
}

/// A webhook was not called, or its answer cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallError {
    pub message: String,
    /// For metrics.
    pub code: u16,
}

impl CallError {
    pub fn new(code: StatusCode, message: impl Into<String>) -> CallError {
        CallError {
            message: message.into(),
            code: code.as_u16(),
        }
    }
}

impl Client {
    /// The client of the current context of a kubeconfig file.
    pub async fn of_kubeconfig(file: &Path, world: World) -> Result<Client, CallError> {
        let failed = |why: String| CallError::new(StatusCode::INTERNAL_SERVER_ERROR, why);
        let kubeconfig = Kubeconfig::read(file).map_err(|error| failed(error.to_string()))?;
        let kubeconfig = kubeconfig.ok_or_else(|| {
            failed(format!(
                "stat {}: no such file or directory",
                file.display()
            ))
        })?;

        let settings = Config::of_context(&kubeconfig, None);
        let settings = settings.map_err(|error| failed(error.to_string()))?;
        let server: http::Uri = settings
            .server
            .parse()
            .map_err(|error| failed(format!("{}: {error}", settings.server)))?;
        let authority = server.authority().map(ToString::to_string);
        let url = format!("https://{}", authority.unwrap_or_default());

        let settings = Config {
            server: url.clone(),
            ..settings
        };
        let transport = Https::dialing(settings, world, Dialing::default()).await;
        Ok(Client {
            transport: transport.map_err(|error| failed(error.to_string()))?,
            url,
            path: cleaned(server.path()),
            now: world.now,
        })
    }

    /// Posts JSON. The answer may have `limit` bytes, and arrives within `timeout`.
    pub async fn post(
        &self,
        body: Bytes,
        timeout: Duration,
        limit: usize,
    ) -> Result<Value, CallError> {
        let shown = timeout_text(timeout);
        let path = format!("{}?timeout={shown}", self.path);
        let url = Quoted(&format!("{}{path}", self.url)).to_string();
        let failed = |why: &str| {
            CallError::new(
                StatusCode::SERVICE_UNAVAILABLE,
                format!("Post {url}: {why}"),
            )
        };

        let deadline = Instant::now() + timeout;
        let mut retries = 0;
        loop {
            let answered = tokio::time::timeout_at(deadline, self.send(&path, body.clone(), limit));
            let answered = answered.await.map_err(|_| failed(DEADLINE))?;
            let answered = answered.map_err(|error| match error {
                SendError::Unsent(why) => failed(&why),
                SendError::Body(why) => CallError::new(StatusCode::SERVICE_UNAVAILABLE, why),
            })?;

            match answered.retry_after() {
                Some(wait) if retries < MAX_RETRIES => {
                    retries += 1;
                    let again = Instant::now() + wait;
                    if again >= deadline {
                        tokio::time::sleep_until(deadline).await;
                        return Err(failed(DEADLINE));
                    }
                    tokio::time::sleep_until(again).await;
                }
                _ => return answer::read(&answered),
            }
        }
    }

    async fn send(&self, path: &str, body: Bytes, limit: usize) -> Result<Answered, SendError> {
        let json = HeaderValue::from_static("application/json");
        let mut request = Request::new(body);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = path
            .parse()
            .map_err(|error: http::uri::InvalidUri| SendError::Unsent(error.to_string()))?;

        let headers = request.headers_mut();
        headers.insert(header::CONTENT_TYPE, json);
        headers.insert(
            header::ACCEPT,
            HeaderValue::from_static("application/json, */*"),
        );
        headers.insert(
            header::USER_AGENT,
            HeaderValue::from_static("kube-apiserver-admission"),
        );

        let answer = self.transport.send(request).await;
        let answer =
            answer.map_err(|error| SendError::Unsent(transport_in_go(&error, (self.now)())))?;
        let (head, body) = answer.into_parts();

        match Limited::new(body, limit).collect().await {
            Ok(body) => Ok(Answered {
                code: head.status,
                headers: head.headers,
                body: body.to_bytes(),
            }),
            Err(error) if error.is::<LengthLimitError>() => Err(SendError::Body(format!(
                "the response is larger than {limit} bytes"
            ))),
            Err(_) => Err(SendError::Body(
                "unexpected error when reading response body. Please retry. Original error: \
                 unexpected EOF"
                    .to_owned(),
            )),
        }
    }
}

enum SendError {
    /// There was no answer.
    Unsent(String),
    /// It broke off, or is too large.
    Body(String),
}

/// A complete answer.
pub(super) struct Answered {
    pub(super) code: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Answered {
    /// When the server wants the request again.
    fn retry_after(&self) -> Option<Duration> {
        let asks = self.code == StatusCode::TOO_MANY_REQUESTS || self.code.is_server_error();
        let seconds = self.headers.get(header::RETRY_AFTER)?.to_str().ok()?;
        asks.then(|| seconds.parse().ok().map(Duration::from_secs))?
    }
}

/// A path as Go's `path.Join` leaves it.
pub(super) fn cleaned(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// A duration as Go prints it, rounded up to seconds.
fn timeout_text(timeout: Duration) -> String {
    let seconds = timeout.as_secs() + u64::from(timeout.subsec_nanos() > 0);
    coracle_api::time::Duration::from(Duration::from_secs(seconds)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_those_that_upstream_calls() {
        for (given, expected) in [
            ("", "/"),
            ("/", "/"),
            ("/a/b/", "/a/b"),
            ("a//b/../c", "/a/c"),
            ("/../x", "/x"),
        ] {
            assert_eq!(cleaned(given), expected);
        }
        for (millis, expected) in [(10_000, "10s"), (1, "1s"), (9_001, "10s"), (60_000, "1m0s")] {
            assert_eq!(timeout_text(Duration::from_millis(millis)), expected);
        }
    }
}
