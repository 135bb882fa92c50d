//! One connection of one client, as lean as it can be: what is measured is the server.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::target::Target;

/// Longer than any answer takes on a server that is up.
const ANSWERED_WITHIN: Duration = Duration::from_secs(120);

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
    #[error("{address}: cannot be reached: {error}")]
    Connect { address: String, error: io::Error },
    #[error("the request failed")]
    Http(#[from] hyper::Error),
    #[error("no answer within {} seconds", ANSWERED_WITHIN.as_secs())]
    TooSlow,
    #[error("{path}: {status}: {body}")]
    Refused {
        path: String,
        status: StatusCode,
        body: String,
    },
}

/// What is asked.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) content_type: &'static str,
    pub(super) body: Bytes,
    pub(super) gzip: bool,
}

impl Question {
    pub(super) fn get(path: impl Into<String>) -> Question {
        let body = Bytes::new();
        Question {
            method: Method::GET,
            path: path.into(),
            content_type: "",
            body,
            gzip: false,
        }
    }

    pub(super) fn delete(path: impl Into<String>) -> Question {
        Question {
            method: Method::DELETE,
            ..Question::get(path)
        }
    }

    pub(super) fn post(path: impl Into<String>, body: impl Into<Bytes>) -> Question {
        let question = Question::get(path);
        Question {
            method: Method::POST,
            content_type: "application/json",
            body: body.into(),
            ..question
        }
    }

    pub(super) fn patch(path: impl Into<String>, body: impl Into<Bytes>) -> Question {
        let content_type = "application/merge-patch+json";
        Question {
            method: Method::PATCH,
            content_type,
            ..Question::post(path, body)
        }
    }
}

impl Connection {
    pub(super) async fn open(target: &Target) -> Result<Connection, RequestError> {
        let failed = |error| RequestError::Connect {
            address: target.address.clone(),
            error,
        };
        let socket = TcpStream::connect(&target.address).await.map_err(failed)?;
        socket.set_nodelay(true).map_err(failed)?;

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

    /// Asks, and reads the whole answer; how many bytes it had.
    pub(super) async fn ask(&mut self, question: Question) -> Result<usize, RequestError> {
        let path = question.path.clone();
        let answered = async {
            let response = self.begin(question).await?;
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

        tokio::time::timeout(ANSWERED_WITHIN, answered)
            .await
            .map_err(|_| RequestError::TooSlow)?
    }

    /// Asks; the answer is read by whoever asked.
    pub(super) async fn begin(
        &mut self,
        question: Question,
    ) -> Result<Response<Incoming>, RequestError> {
        let uri = match &self.sender {
            Sender::Http1(_) => question.path,
            Sender::Http2(_) => format!("https://{}{}", self.host, question.path),
        };

        let mut request = Request::builder().method(question.method).uri(uri);
        if matches!(self.sender, Sender::Http1(_)) {
            request = request.header(header::HOST, &self.host);
        }
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }

        if !question.content_type.is_empty() {
            request = request.header(header::CONTENT_TYPE, question.content_type);
        }
        if question.gzip {
            request = request.header(header::ACCEPT_ENCODING, "gzip");
        }

        let request = request
            .header(header::USER_AGENT, "coracle-bench")
            .header(header::ACCEPT, "application/json");
        let request = request
            .body(Full::new(question.body))
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

/// What the server may send ahead.
const WINDOW: u32 = 4 << 20;
