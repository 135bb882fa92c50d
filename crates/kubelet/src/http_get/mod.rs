//! An HTTP GET as probes and hooks make it: from the host to the pod, without certificate
//! verification, following redirects within the same host only.
//!
//! `target` is the request, `exchange` sends it over one connection that is closed afterwards.
//! Errors have the text of Go's client, because users search for it in events.

mod exchange;
mod target;
#[cfg(test)]
pub(crate) mod tests;

use std::time::Duration;

use coracle_api::go_text::{self, Quoted};
use k8s_openapi::api::core::v1::Container;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

pub(crate) use exchange::connect;
pub(crate) use target::Target;

/// Longer bodies are truncated.
pub(crate) const MAX_BODY: usize = 10 * 1024;
/// Redirects followed at most.
const MAX_REDIRECTS: usize = 10;

/// The response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

/// Why there is no response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HttpError {
    #[error("Get {}: {reason}", Quoted(url))]
    Failed { url: String, reason: String },
    /// The connection failed after the head of the response.
    #[error("{0}")]
    Body(String),
}

impl HttpError {
    /// Whether a server that should speak TLS speaks plain HTTP.
    pub(crate) fn is_plain_http(&self) -> bool {
        matches!(self, HttpError::Failed { reason, .. } if reason == exchange::PLAIN_HTTP)
    }
}

/// Sends the request and follows redirects to the same host. A redirect to another host is returned
/// as the response.
pub(crate) async fn get(target: &Target, timeout: Option<Duration>) -> Result<Answer, HttpError> {
    let mut current = target.clone();
    let request = async {
        for _ in 0..MAX_REDIRECTS {
            match exchange::send(&current).await? {
                exchange::Reply::Final(answer) => return Ok(answer),
                exchange::Reply::Redirect { location, answer } => match current.redirect(&location)
                {
                    Some(next) if next.host == target.host => current = next,
                    _ => return Ok(answer),
                },
            }
        }

        let reason = format!("stopped after {MAX_REDIRECTS} redirects");
        Err(HttpError::Failed {
            url: current.url(),
            reason,
        })
    };

    let Some(timeout) = timeout else {
        return request.await;
    };

    tokio::time::timeout(timeout, request)
        .await
        .unwrap_or_else(|_| {
            let reason =
                "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
                    .to_owned();
            Err(HttpError::Failed {
                url: target.url(),
                reason,
            })
        })
}

/// Why a port is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PortError {
    #[error("strconv.Atoi: parsing {}: {reason}", Quoted(text))]
    Name {
        text: String,
        reason: go_text::NumberError,
    },
    #[error("invalid port number: {0}")]
    Range(i64),
}

/// Resolves a port: a number, the name of a container port, or a number in a string.
pub(crate) fn resolve_port(port: &IntOrString, container: &Container) -> Result<u16, PortError> {
    let number = match port {
        IntOrString::Int(number) => i64::from(*number),
        IntOrString::String(text) => {
            let mut named = container.ports.iter().flatten();
            match named.find(|port| port.name.as_deref() == Some(text)) {
                Some(port) => i64::from(port.container_port),
                None => go_text::parse_int(text).map_err(|reason| PortError::Name {
                    text: text.clone(),
                    reason,
                })?,
            }
        }
    };

    u16::try_from(number)
        .ok()
        .filter(|port| *port > 0)
        .ok_or(PortError::Range(number))
}
