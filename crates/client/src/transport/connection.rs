//! Connections to one server: HTTP/2 is shared by many requests, HTTP/1.1 is used by one after the
//! other.
//!
//! A watch keeps its stream open for minutes, and servers limit the streams of a connection: when
//! one is nearly full, the next request opens another.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use coracle_base::sync::Mutex;
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::{Body, BodyError, TransportError};
use crate::tasks::Tasks;

/// The maximum number of streams on an HTTP/2 connection: servers allow 100 or more.
const STREAMS: usize = 90;

/// The maximum number of idle HTTP/1.1 connections to a server.
const IDLE: usize = 25;

/// The flow-control window of a stream.
const STREAM_WINDOW: u32 = 1 << 20;

/// An HTTP/2 connection to a server that others share is tested when it was silent for this long, …
const SILENCE: Duration = Duration::from_secs(30);

/// … and closed when the server does not answer the test.
const PONG_WITHIN: Duration = Duration::from_secs(15);

/// The body of a request, which may arrive while it is sent.
pub type RequestBody = UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;

type Http2 = http2::SendRequest<RequestBody>;
type Http1 = http1::SendRequest<RequestBody>;

/// The open connections to one server.
#[derive(Default)]
pub(super) struct Connections {
    /// The number of token holders is the number of open streams.
    http2: Mutex<Vec<(Http2, Arc<()>)>>,
    idle: Arc<Mutex<Vec<Http1>>>,
    drivers: Tasks,
}

/// A connection to send one request on.
pub(super) enum Sender {
    Http2(Http2, Arc<()>),
    Http1(Http1),
}

impl Connections {
    /// An open connection with a free stream.
    pub(super) fn open(&self) -> Option<Sender> {
        let mut open = self.http2.lock();
        open.retain(|(sender, _)| !sender.is_closed());
        if let Some((sender, token)) = open
            .iter()
            .find(|(_, token)| Arc::strong_count(token) <= STREAMS)
        {
            return Some(Sender::Http2(sender.clone(), token.clone()));
        }
        // One whose answer has just ended takes a moment until it is ready; `send` waits for that.
        let mut idle = self.idle.lock();
        idle.retain(|sender| !sender.is_closed());
        let ready = idle.iter().rposition(Http1::is_ready);
        let place = ready.or_else(|| idle.len().checked_sub(1))?;
        Some(Sender::Http1(idle.swap_remove(place)))
    }

    /// Sets up a connection on a stream, with the HTTP version that the handshake negotiated.
    /// `tested`: a server that vanishes while requests are open is noticed.
    pub(super) async fn begin(
        &self,
        stream: TlsStream<TcpStream>,
        tested: bool,
    ) -> Result<Sender, TransportError> {
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let stream = TokioIo::new(stream);
        if !is_http2 {
            let (sender, connection) = http1::handshake(stream).await.map_err(lost)?;
            let connection = connection.with_upgrades();
            self.drivers.spawn(async move { ended(connection.await) });
            return Ok(Sender::Http1(sender));
        }

        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW);
        builder.initial_connection_window_size(STREAM_WINDOW.saturating_mul(16));
        if tested {
            builder
                .keep_alive_interval(SILENCE)
                .keep_alive_timeout(PONG_WITHIN);
        }

        let (sender, connection) = builder.handshake(stream).await.map_err(lost)?;
        self.drivers.spawn(async move { ended(connection.await) });
        let token = Arc::new(());
        let mut open = self.http2.lock();
        open.push((sender.clone(), token.clone()));

        Ok(Sender::Http2(sender, token))
    }

    pub(super) async fn send(
        &self,
        sender: Sender,
        request: Request<RequestBody>,
    ) -> Result<Response<Body>, NoAnswer> {
        match sender {
            Sender::Http2(mut sender, token) => {
                let answer = sender.try_send_request(request).await.map_err(no_answer)?;
                Ok(answer.map(|body| {
                    ResponseBody {
                        body,
                        hold: Hold::Stream(token),
                    }
                    .boxed_unsync()
                }))
            }
            Sender::Http1(mut sender) => {
                if let Err(error) = sender.ready().await {
                    return Err(NoAnswer {
                        error: lost(error),
                        unsent: Some(request),
                    });
                }
                let answer = sender.try_send_request(request).await.map_err(no_answer)?;
                let hold = Hold::Connection(Some(sender), self.idle.clone());
                Ok(answer.map(|body| ResponseBody { body, hold }.boxed_unsync()))
            }
        }
    }

    /// Open connections are not used for new requests any more.
    pub(super) fn forget(&self) {
        self.http2.lock().clear();
        self.idle.lock().clear();
    }
}

/// Why a connection has no answer.
pub(super) struct NoAnswer {
    pub(super) error: TransportError,
    /// The request, where the connection was closed before anything of it was written.
    pub(super) unsent: Option<Request<RequestBody>>,
}

fn no_answer(mut error: TrySendError<Request<RequestBody>>) -> NoAnswer {
    NoAnswer {
        unsent: error.take_message(),
        error: lost(error.into_error()),
    }
}

fn lost(error: hyper::Error) -> TransportError {
    TransportError::Lost(error.into())
}

/// Requests in progress get the error themselves.
fn ended(result: hyper::Result<()>) {
    if let Err(error) = result {
        tracing::debug!(%error, "connection to the server closed");
    }
}

/// A body that keeps its stream on the connection until it has ended.
struct ResponseBody {
    body: Incoming,
    hold: Hold,
}

enum Hold {
    #[expect(dead_code, reason = "it is counted, not read")]
    Stream(Arc<()>),
    Connection(Option<Http1>, Arc<Mutex<Vec<Http1>>>),
}

impl http_body::Body for ResponseBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let (Poll::Ready(None), Hold::Connection(sender, idle)) = (&polled, &mut self.hold)
            && let Some(sender) = sender.take()
        {
            let mut idle = idle.lock();
            idle.retain(|sender| !sender.is_closed());
            if idle.len() < IDLE {
                idle.push(sender);
            }
        }
        polled.map(|frame| frame.map(|frame| frame.map_err(|error| BodyError(error.into()))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
