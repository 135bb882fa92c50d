//! Forwards a request to the server of its group and version, and the answer to the client.
//!
//! The path is written anew from what was authorized, so that both servers read it alike; the
//! headers of one connection, and those that name a user, are never passed on. Texts are upstream's.

use std::time::Duration;

use bytes::Bytes;
use coracle_client::TransportError;
use coracle_client::transport::RequestBody as Outgoing;
use http::header::{self, HeaderName};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Empty};
use hyper::upgrade::OnUpgrade;
use tokio::time::Instant;

use super::limited::{self, Forwarded};
use super::{Aggregation, Remote, identity};
use crate::answer::{self, Answer, BrokenOff};
use crate::connect::forwarding::{
    self, remove_cors, remove_hop_by_hop, upgrades_to_http2, wants_upgrade,
};
use crate::network_errors::transport_in_go;
use crate::request::{Request, RequestBody};

/// How long a server may take to say what it serves. Clients wait for that before all else.
const DISCOVERY_WITHIN: Duration = Duration::from_secs(5);

const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

const UNAVAILABLE: &str = "service unavailable";

impl Aggregation {
    /// Answers a request by way of the server that serves its group and version.
    pub(crate) async fn forward<B: RequestBody>(
        &self,
        remote: &Remote,
        request: &Request<'_>,
        body: B,
    ) -> Answer {
        if !remote.is_available {
            return refused(StatusCode::SERVICE_UNAVAILABLE, UNAVAILABLE);
        }
        if request.head.method == Method::CONNECT {
            return refused(StatusCode::METHOD_NOT_ALLOWED, "method not allowed");
        }

        let parts = request.info.path.trim_matches('/').split('/').count();
        let is_discovery = request.info.target.is_none() && parts == 3;
        if !is_discovery {
            return self.forward_in_time(remote, request, body).await;
        }

        let deadline = Instant::now() + DISCOVERY_WITHIN;
        let forwarded = self.forward_in_time(remote, request, body);
        match tokio::time::timeout_at(deadline, forwarded).await {
            Ok(answer) => limited::until(answer, deadline),
            Err(_) => unreachable_server("context deadline exceeded"),
        }
    }

    async fn forward_in_time<B: RequestBody>(
        &self,
        remote: &Remote,
        request: &Request<'_>,
        body: B,
    ) -> Answer {
        let connections = match &remote.backend.connections {
            Ok(connections) => connections,
            Err(why) => return refused(StatusCode::INTERNAL_SERVER_ERROR, why),
        };

        let sent = match self.outgoing(request) {
            Err(why) => return unreachable_server(&why),
            Ok(outgoing) if wants_upgrade(request.head) => {
                if upgrades_to_http2(&request.head.headers) {
                    return refused(StatusCode::BAD_REQUEST, forwarding::NO_HTTP2);
                }
                let Some(client) = request.head.extensions.get::<OnUpgrade>().cloned() else {
                    return refused(
                        StatusCode::SERVICE_UNAVAILABLE,
                        "request connection cannot be hijacked",
                    );
                };
                let outgoing = forwarding::asking_for_upgrade(outgoing, &request.head.headers);
                let sent = connections.upgrades.forward(outgoing).await;
                return self.upgraded(sent, client);
            }
            Ok(outgoing) => {
                let body = body.map_err(Into::<BrokenOff>::into).boxed_unsync();
                connections.shared.forward(outgoing.map(|_| body)).await
            }
        };

        match sent {
            Ok(answer) => {
                to_client(answer.map(|body| body.map_err(BrokenOff::from).boxed_unsync()))
            }
            Err(error) => self.not_sent(&error),
        }
    }

    /// The request as the other server gets it, without a body.
    fn outgoing(&self, request: &Request<'_>) -> Result<http::Request<Outgoing>, String> {
        let mut outgoing = http::Request::new(no_body());
        *outgoing.method_mut() = request.head.method.clone();
        let query = request.head.uri.query();
        *outgoing.uri_mut() = uri(&request.info.path, query).ok_or("invalid path")?;

        let headers = outgoing.headers_mut();
        headers.clone_from(&request.head.headers);
        let host = request.head.uri.authority();
        let host = host.and_then(|host| HeaderValue::from_str(host.as_str()).ok());
        let host = host.or_else(|| headers.get(header::HOST).cloned());
        remove_hop_by_hop(headers);
        // It is that of the body as it is sent.
        headers.remove(header::CONTENT_LENGTH);

        identity::set(headers, &request.caller.user)?;
        headers.insert(AUDIT_ID, request.audit_id.clone());
        forwarding::name_origin(headers, request.head, host);

        Ok(outgoing)
    }

    /// The answer to a request for another protocol; if the server agrees, the connections are
    /// joined.
    fn upgraded(
        &self,
        sent: Result<Response<coracle_client::transport::Body>, TransportError>,
        client: OnUpgrade,
    ) -> Answer {
        let answer = match sent {
            Ok(answer) => answer,
            Err(error) => {
                let why = transport_in_go(&error, self.world.now());
                let text = format!("error dialing backend: {why}");
                return refused(StatusCode::SERVICE_UNAVAILABLE, &text);
            }
        };

        match answer.status() {
            StatusCode::SWITCHING_PROTOCOLS => forwarding::join(&self.tasks, client, answer),
            status if status.as_u16() < 400 => {
                let text = format!("invalid upgrade response: status code {}", status.as_u16());
                refused(StatusCode::SERVICE_UNAVAILABLE, &text)
            }
            _ => to_client(answer.map(|body| body.map_err(BrokenOff::from).boxed_unsync())),
        }
    }

    fn not_sent(&self, error: &TransportError) -> Answer {
        match error {
            TransportError::Resolve(_) => refused(StatusCode::SERVICE_UNAVAILABLE, UNAVAILABLE),
            error => unreachable_server(&transport_in_go(error, self.world.now())),
        }
    }
}

fn no_body() -> Outgoing {
    Empty::<Bytes>::new()
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// The answer of another server as the client gets it.
fn to_client(mut answer: Answer) -> Answer {
    let status = answer.status();
    if status == StatusCode::SWITCHING_PROTOCOLS {
        return unreachable_server("the backend changed the protocol, which was not asked for");
    }

    if status.is_redirection() && answer.headers().contains_key(header::LOCATION) {
        return answer::text(
            StatusCode::BAD_GATEWAY,
            "the backend attempted to redirect this request, which is not permitted",
        );
    }

    let headers: &mut HeaderMap = answer.headers_mut();
    remove_hop_by_hop(headers);
    remove_cors(headers);
    *answer.version_mut() = http::Version::default();
    *answer.extensions_mut() = http::Extensions::new();
    answer.extensions_mut().insert(Forwarded);

    answer
}

/// An error in plain text, whatever the client accepts.
fn refused(status: StatusCode, text: &str) -> Answer {
    let mut answer = answer::text(status, &format!("{text}\n"));
    answer.headers_mut().insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    answer
}

fn unreachable_server(why: &str) -> Answer {
    let text = format!("error trying to reach service: {why}");
    refused(StatusCode::SERVICE_UNAVAILABLE, &text)
}

/// A path that was decoded, and a query that was not.
fn uri(path: &str, query: Option<&str>) -> Option<Uri> {
    let mut text = String::with_capacity(path.len() + query.map_or(0, str::len) + 1);
    for byte in path.bytes() {
        let is_legal = byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&byte);
        match is_legal {
            true => text.push(char::from(byte)),
            false => text.push_str(&format!("%{byte:02X}")),
        }
    }

    if let Some(query) = query {
        text.push('?');
        text.push_str(query);
    }
    text.parse::<PathAndQuery>().ok().map(Uri::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::decode_path;

    #[test]
    fn both_servers_read_the_same_path() {
        let check = |path: &str, expected: &str| {
            let found = uri(&decode_path(path), Some("a=%2F")).unwrap();
            assert_eq!(found.to_string(), format!("{expected}?a=%2F"), "{path}");
            assert_eq!(decode_path(found.path()), decode_path(path), "{path}");
        };

        check("/apis/g/v/x", "/apis/g/v/x");
        check("/apis/g/v/a%2Fb", "/apis/g/v/a/b");
        check("/apis/g/v/a%252Fb", "/apis/g/v/a%252Fb");
        check("/apis/g/v/%2A/x:y", "/apis/g/v/%2A/x:y");
        check("/apis/g/v/a%0d%0aX: y", "/apis/g/v/a%0D%0AX:%20y");
        check("/apis/g/v/%3Fq", "/apis/g/v/%3Fq");
        check("/apis/g/v/ä", "/apis/g/v/%C3%A4");
    }
}
