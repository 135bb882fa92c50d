//! Forwards a request to a backend and its response to the client: as HTTP, or as raw bytes after
//! an upgrade.

use bytes::Bytes;
use http::header;
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;

use super::backend::Backend;
use super::dial::{self, DialError};
use super::forwarding::{self, upgrades_to_http2};
use super::links::Page;
use super::{Connect, Verification, page, rewrite};
use crate::ApiError;
use crate::answer::{self, Answer};
use crate::request::RequestBody;

/// The longest text of a component about its health.
const LONGEST_HEALTH: usize = 10 << 10;

/// A request to forward, and its backend.
pub(super) struct ForwardedRequest<'a> {
    pub(super) head: &'a Parts,
    pub(super) backend: Backend,
    /// Path and query at the backend.
    pub(super) path: String,
    /// The path of this server that maps to the root of the backend.
    pub(super) prefix: &'a str,
}

impl Connect {
    /// Forwards an upgrade request, and copies the bytes that follow both ways.
    pub(super) async fn upgrade(
        &self,
        forwarded: &ForwardedRequest<'_>,
    ) -> Result<Answer, ApiError> {
        let Some(client) = forwarded.head.extensions.get::<OnUpgrade>().cloned() else {
            return Err(ApiError::unexplained(
                "request connection cannot be hijacked",
            ));
        };

        if upgrades_to_http2(&forwarded.head.headers) {
            return Err(ApiError::bad_request(forwarding::NO_HTTP2));
        }
        let mut request = request(forwarded, Empty::<Bytes>::new())?;
        rewrite::remove_hop_by_hop(request.headers_mut());
        request.headers_mut().remove(header::CONTENT_LENGTH);
        let request = forwarding::asking_for_upgrade(request, &forwarded.head.headers);
        let tls = self.settings(&forwarded.backend, Verification::Required);
        let sent = dial::send(
            &forwarded.backend,
            &tls,
            self.config.timeout,
            request,
            &self.tasks,
        )
        .await;

        let answer =
            sent.map_err(|error| ApiError::unexplained(format!("error dialing backend: {error}")))?;
        match answer.status() {
            StatusCode::SWITCHING_PROTOCOLS => {}
            status if status.as_u16() < 400 => {
                let text = format!("invalid upgrade response: status code {}", status.as_u16());
                return Err(ApiError::unexplained(text));
            }
            _ => return Ok(response_to_client(answer)),
        }

        Ok(forwarding::join(&self.tasks, client, answer))
    }

    /// Forwards a request, as a proxy does.
    pub(super) async fn proxy<B: RequestBody>(
        &self,
        forwarded: &ForwardedRequest<'_>,
        body: B,
    ) -> Result<Answer, ApiError> {
        if forwarded.head.method == Method::CONNECT {
            return Err(ApiError::method_not_allowed());
        }
        let mut request = request(forwarded, body)?;
        rewrite::remove_hop_by_hop(request.headers_mut());

        let tls = self.settings(&forwarded.backend, Verification::Required);
        let sent = dial::send(
            &forwarded.backend,
            &tls,
            self.config.timeout,
            request,
            &self.tasks,
        )
        .await;

        let mut answer = sent.map_err(|error| {
            ApiError::service_unavailable(format!("error trying to reach service: {error}"))
        })?;
        if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Err(ApiError::service_unavailable(
                "error trying to reach service: the backend changed the protocol, which was not asked for",
            ));
        }
        let headers = answer.headers_mut();
        rewrite::remove_hop_by_hop(headers);
        rewrite::remove_cors(headers);

        let backend = forwarded.backend.authority();
        if let Some(given) = headers.get(header::LOCATION) {
            if let Some(location) =
                rewrite::location(given, &backend, forwarded.prefix, &forwarded.path)
            {
                headers.insert(header::LOCATION, location);
            }
            return Ok(response_to_client(answer));
        }

        if forwarded.head.method == Method::HEAD {
            return Ok(response_to_client(answer));
        }
        let requested = forwarded.head.headers.get(header::HOST);
        let page = Page {
            prefix: forwarded.prefix.trim_end_matches('/'),
            backend: &backend,
            requested: requested
                .and_then(|host| host.to_str().ok())
                .or_else(|| Some(forwarded.head.uri.authority()?.as_str()))
                .unwrap_or_default(),
        };
        Ok(page::with_links(response_to_client(answer), page).await)
    }

    /// The health of a component on this machine, whatever its certificate; or why it is not known.
    pub(crate) async fn component_health(&self, port: u16) -> Result<(StatusCode, String), String> {
        let backend = Backend {
            is_kubelet: false,
            tls: true,
            host: "127.0.0.1".to_owned(),
            port,
        };
        let failed = |error: &dyn std::fmt::Display| {
            format!("Get \"https://{}/healthz\": {error}", backend.authority())
        };
        let answer = self
            .fetch(&backend, "/healthz", Verification::Skipped)
            .await;
        let answer = answer.map_err(|error| failed(&error))?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), LONGEST_HEALTH).collect();
        let body = body.await.map_err(|error| failed(&error))?.to_bytes();
        Ok((status, String::from_utf8_lossy(&body).into_owned()))
    }

    /// Requests a response of unbounded length from a kubelet.
    pub(super) async fn fetch(
        &self,
        backend: &Backend,
        path: &str,
        verification: Verification,
    ) -> Result<Response<Incoming>, DialError> {
        let mut request = Request::new(Empty::<Bytes>::new());
        *request.uri_mut() = Uri::from(
            path.parse::<PathAndQuery>()
                .unwrap_or(PathAndQuery::from_static("/")),
        );

        if let Ok(host) = HeaderValue::from_str(&backend.authority()) {
            request.headers_mut().insert(header::HOST, host);
        }

        dial::send(
            backend,
            &self.settings(backend, verification),
            self.config.timeout,
            request,
            &self.tasks,
        )
        .await
    }
}

/// The request as the other side gets it.
fn request<B>(forwarded: &ForwardedRequest<'_>, body: B) -> Result<Request<B>, ApiError> {
    let path = forwarded.path.parse::<PathAndQuery>();
    let path = path.map_err(|error| ApiError::bad_request(format!("invalid path: {error}")))?;
    let mut request = Request::new(body);
    *request.method_mut() = forwarded.head.method.clone();
    *request.uri_mut() = Uri::from(path);
    let headers = request.headers_mut();
    headers.clone_from(&forwarded.head.headers);

    // HTTP/2 has the host elsewhere; HTTP/1.1 requires the header.
    let host = forwarded
        .head
        .uri
        .authority()
        .map(|authority| authority.as_str().to_owned());

    let host = host.unwrap_or_else(|| forwarded.backend.authority());
    if !headers.contains_key(header::HOST)
        && let Ok(host) = HeaderValue::from_str(&host)
    {
        headers.insert(header::HOST, host);
    }

    let host = headers.get(header::HOST).cloned();
    forwarding::name_origin(headers, forwarded.head, host);

    Ok(request)
}

/// The response of a backend.
pub(super) fn response_to_client(answer: Response<Incoming>) -> Answer {
    let (mut head, body) = answer.into_parts();
    head.version = http::Version::default();
    head.extensions = http::Extensions::new();
    Response::from_parts(head, body.map_err(answer::BrokenOff::from).boxed_unsync())
}

/// Whether the client is redirected to the path with a trailing slash: without it, relative links
/// in the response would be resolved wrongly.
pub(super) fn needs_slash(head: &Parts, rest: &str) -> bool {
    rest.is_empty()
        && !head.uri.path().ends_with('/')
        && matches!(head.method, Method::GET | Method::HEAD)
}
