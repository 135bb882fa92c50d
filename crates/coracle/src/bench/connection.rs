//! One connection of one benchmark client, with as little overhead as possible.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use coracle_base::dial;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::task::JoinSet;

use super::target::Target;

/// Request timeout.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(120);

pub(super) struct Connection {
    sender: Sender,
    host: String,
    token: Option<String>,
    /// Moves bytes while the connection lives.
    _driver: JoinSet<()>,
}

enum Sender {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    #[error("cannot connect to {address}: {error}")]
    Connect { address: String, error: io::Error },
    #[error("the request failed")]
    Http(#[from] hyper::Error),
    #[error("no response within {} seconds", REQUEST_TIMEOUT.as_secs())]
    Timeout,
    #[error("{path}: {status}: {body}")]
    Refused {
        path: String,
        status: StatusCode,
        body: String,
    },
}

/// A request.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) content_type: &'static str,
    pub(super) body: Bytes,
    pub(super) gzip: bool,
}

impl Call {
    pub(super) fn get(path: impl Into<String>) -> Call {
        let body = Bytes::new();
        Call {
            method: Method::GET,
            path: path.into(),
            content_type: "",
            body,
            gzip: false,
        }
    }

    pub(super) fn delete(path: impl Into<String>) -> Call {
        Call {
            method: Method::DELETE,
            ..Call::get(path)
        }
    }

    pub(super) fn post(path: impl Into<String>, body: impl Into<Bytes>) -> Call {
        let call = Call::get(path);
        Call {
            method: Method::POST,
            content_type: "application/json",
            body: body.into(),
            ..call
        }
    }

    pub(super) fn patch(path: impl Into<String>, body: impl Into<Bytes>) -> Call {
        let content_type = "application/merge-patch+json";
        Call {
            method: Method::PATCH,
            content_type,
            ..Call::post(path, body)
        }
    }
}

impl Connection {
    pub(super) async fn open(target: &Target) -> Result<Connection, RequestError> {
        let failed = |error| RequestError::Connect {
            address: target.address.clone(),
            error,
        };
        let socket = dial::tcp(&target.address).await.map_err(failed)?;

        let stream = target
            .tls
            .connect(target.name.clone(), socket)
            .await
            .map_err(failed)?;
        let stream = TokioIo::new(stream);

        let mut driver = JoinSet::new();
        let sender = if target.http2 {
            let mut builder = http2::Builder::new(TokioExecutor::new());
            builder
                .initial_stream_window_size(WINDOW)
                .initial_connection_window_size(WINDOW);
            let (sender, connection) = builder.handshake(stream).await?;
            driver.spawn(async { drop(connection.await) });
            Sender::Http2(sender)
        } else {
            let (sender, connection) = http1::handshake(stream).await?;
            driver.spawn(async { drop(connection.await) });
            Sender::Http1(sender)
        };

        Ok(Connection {
            sender,
            host: target.address.clone(),
            token: target.token.clone(),
            _driver: driver,
        })
    }

    /// Sends a request and reads the whole response; returns its length in bytes.
    pub(super) async fn send(&mut self, call: Call) -> Result<usize, RequestError> {
        let path = call.path.clone();
        let answered = async {
            let response = self.begin(call).await?;
            let status = response.status();
            let mut body = response.into_body();
            let mut length = 0;

            let mut beginning = Vec::new();
            while let Some(frame) = body.frame().await {
                let Ok(data) = frame?.into_data() else {
                    continue;
                };
                length += data.len();
                if !status.is_success() {
                    beginning.extend_from_slice(&data);
                }
            }

            match status.is_success() {
                true => Ok(length),
                false => {
                    let body = String::from_utf8_lossy(&beginning).into_owned();
                    Err(RequestError::Refused { path, status, body })
                }
            }
        };

        tokio::time::timeout(REQUEST_TIMEOUT, answered)
            .await
            .map_err(|_| RequestError::Timeout)?
    }

    /// Sends a request; the caller reads the body.
    pub(super) async fn begin(&mut self, call: Call) -> Result<Response<Incoming>, RequestError> {
        let uri = match &self.sender {
            Sender::Http1(_) => call.path,
            Sender::Http2(_) => format!("https://{}{}", self.host, call.path),
        };

        let mut request = Request::builder().method(call.method).uri(uri);
        if matches!(self.sender, Sender::Http1(_)) {
            request = request.header(header::HOST, &self.host);
        }
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }

        if !call.content_type.is_empty() {
            request = request.header(header::CONTENT_TYPE, call.content_type);
        }
        if call.gzip {
            request = request.header(header::ACCEPT_ENCODING, "gzip");
        }

        let request = request
            .header(header::USER_AGENT, "coracle-bench")
            .header(header::ACCEPT, "application/json");
        let request = request
            .body(Full::new(call.body))
            .expect("every part is a valid one");

        Ok(match &mut self.sender {
            Sender::Http1(sender) => {
                sender.ready().await?;
                sender.send_request(request).await?
            }
            Sender::Http2(sender) => {
                sender.ready().await?;
                sender.send_request(request).await?
            }
        })
    }
}

/// HTTP/2 flow control window.
const WINDOW: u32 = 4 << 20;
