//! One request and its response over its own connection.

use std::io;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use coracle_base::dial::{self, drive};
use coracle_base::net::go_text;
use coracle_base::tls::client::{self, Tls};
use http::{HeaderName, HeaderValue, Request, Response, header};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ClientConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::{Answer, HttpError, MAX_BODY, Target};

/// TLS to pods: certificates are not verified, as there is no trust anchor to verify them with.
static TLS: LazyLock<Arc<ClientConfig>> = LazyLock::new(|| {
    let tls = Tls {
        insecure: true,
        ..Tls::default()
    };
    let config = client::config(&tls).expect("nothing of the configuration is read from anywhere");
    Arc::new(config)
});

/// The message of Go's client when a TLS handshake meets a plain HTTP server.
pub(super) const PLAIN_HTTP: &str = "http: server gave HTTP response to HTTPS client";

/// The response to one request.
pub(super) enum Reply {
    Final(Answer),
    /// A redirect.
    Redirect {
        location: String,
        answer: Answer,
    },
}

pub(super) async fn send(target: &Target) -> Result<Reply, HttpError> {
    let failed = |reason: String| HttpError::Failed {
        url: target.url(),
        reason,
    };

    let stream = connect(&target.host, target.port).await.map_err(failed)?;
    if !target.secure {
        return over_http1(stream, target).await;
    }

    let secured = dial::tls(stream, &target.host, Arc::clone(&TLS)).await;

    let stream = secured.map_err(|error| failed(handshake_text(&error)))?;
    match stream.get_ref().1.alpn_protocol() {
        Some(b"h2") => over_http2(stream, target).await,
        _ => over_http1(stream, target).await,
    }
}

/// Connects to a host; errors have Go's text.
pub(crate) async fn connect(host: &str, port: u16) -> Result<TcpStream, String> {
    let found = tokio::net::lookup_host((host, port)).await;
    let addresses: Vec<_> = found
        .map_err(|_| format!("dial tcp: lookup {host}: no such host"))?
        .collect();

    let mut reason = format!("dial tcp: lookup {host}: no such host");
    for address in addresses {
        match dial::tcp(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => reason = format!("dial tcp {address}: connect: {}", errno_text(&error)),
        }
    }

    Err(reason)
}

async fn over_http1<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    target: &Target,
) -> Result<Reply, HttpError> {
    let failed = |error: &hyper::Error| HttpError::Failed {
        url: target.url(),
        reason: hyper_text(error),
    };

    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| failed(&error))?;

    let request = request(target, target.path.clone())?;
    let exchange = async {
        let response = sender
            .send_request(request)
            .await
            .map_err(|error| failed(&error))?;
        read(response).await
    };

    drive(exchange, connection).await
}

async fn over_http2<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    target: &Target,
) -> Result<Reply, HttpError> {
    let failed = |error: &hyper::Error| HttpError::Failed {
        url: target.url(),
        reason: hyper_text(error),
    };

    let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|error| failed(&error))?;

    let request = request(target, target.url())?;
    let exchange = async {
        let response = sender
            .send_request(request)
            .await
            .map_err(|error| failed(&error))?;
        read(response).await
    };

    drive(exchange, connection).await
}

fn request(target: &Target, uri: String) -> Result<Request<Empty<Bytes>>, HttpError> {
    let failed = |reason: String| HttpError::Failed {
        url: target.url(),
        reason,
    };

    let mut request = Request::get(uri)
        .body(Empty::new())
        .map_err(|error| failed(error.to_string()))?;
    for (name, value) in &target.headers {
        let header = HeaderName::from_bytes(name.as_bytes());
        let header =
            header.map_err(|_| failed(format!("net/http: invalid header field name {name:?}")))?;
        let value = HeaderValue::from_str(value);
        let value = value
            .map_err(|_| failed(format!("net/http: invalid header field value for {name:?}")))?;
        request.headers_mut().append(header, value);
    }

    let host = target
        .host_header
        .clone()
        .unwrap_or_else(|| target.authority());
    let host = HeaderValue::from_str(&host).map_err(|error| failed(error.to_string()))?;
    request.headers_mut().insert(header::HOST, host);

    Ok(request)
}

async fn read(response: Response<Incoming>) -> Result<Reply, HttpError> {
    let (head, mut body) = response.into_parts();
    let mut bytes = Vec::new();
    while bytes.len() < MAX_BODY {
        let Some(frame) = body.frame().await else {
            break;
        };
        let frame = frame.map_err(|error| HttpError::Body(hyper_text(&error)))?;
        bytes.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
    }

    bytes.truncate(MAX_BODY);
    let body = String::from_utf8_lossy(&bytes).into_owned();
    let answer = Answer {
        status: head.status.as_u16(),
        body,
    };

    let location = head
        .headers
        .get(header::LOCATION)
        .and_then(|location| location.to_str().ok());

    Ok(match (answer.status, location) {
        (301 | 302 | 303 | 307 | 308, Some(location)) if !location.is_empty() => Reply::Redirect {
            location: location.to_owned(),
            answer,
        },
        _ => Reply::Final(answer),
    })
}

fn errno_text(error: &io::Error) -> String {
    go_text(error).map_or_else(|| error.to_string(), str::to_owned)
}

fn hyper_text(error: &hyper::Error) -> String {
    use std::error::Error as _;

    let cause = error
        .source()
        .and_then(|cause| cause.downcast_ref::<io::Error>());
    match cause {
        Some(cause) if cause.kind() != io::ErrorKind::UnexpectedEof => {
            format!("read: {}", errno_text(cause))
        }
        _ if error.is_incomplete_message() || cause.is_some() => "EOF".to_owned(),
        _ => format!("net/http: HTTP/1.x transport connection broken: {error}"),
    }
}

fn handshake_text(error: &io::Error) -> String {
    let cause = error
        .get_ref()
        .and_then(|cause| cause.downcast_ref::<rustls::Error>());
    match cause {
        // A content type that TLS does not define: the first letter of `HTTP`.
        Some(rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType)) => {
            PLAIN_HTTP.to_owned()
        }
        Some(cause) => format!("tls: {cause}"),
        None if error.kind() == io::ErrorKind::UnexpectedEof => "EOF".to_owned(),
        None => format!("read: {}", errno_text(error)),
    }
}
