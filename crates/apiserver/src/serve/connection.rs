//! One connection: TLS, then HTTP/1.1 or HTTP/2 as negotiated, until either side closes it.

use std::convert::Infallible;
use std::future::{pending, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use coracle_client::World;
use futures_util::stream::{FuturesUnordered, StreamExt};
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ServerConnection;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep};
use tokio_rustls::server::TlsStream;
use tracing::debug;

use super::Serving;
use super::arriving::arriving;
use super::pace::{Pace, Paced, RequestGuard, TimeoutCause, Unread};
use super::socket::{Socket, ask_for_tls, begins_in_plain_http, peer_ended};
use crate::answer;
use crate::authn::Peer;
use crate::byte_budget::Reservation;
use crate::chain::{Chain, LastAnswer};
use crate::metrics::Measured;
use crate::request::ClientAddress;

/// How long the TLS handshake may take.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);

/// Headers of a request, all together.
const MAX_HEADERS: u32 = 1 << 20;

/// The most headers of HTTP/1.1: a front proxy may send that many groups. Space for all is
/// allocated for every request.
const MAX_HEADER_COUNT: usize = 1000;

/// The HTTP/2 receive window of one stream.
const STREAM_WINDOW: u32 = 256 * 1024;

/// The most bytes of a response that are encrypted and written at once.
const MAX_UNSENT: usize = 256 * 1024;

/// The most bytes of a response that are passed to HTTP/2 at once, so that the server notices
/// whether it is read.
pub(super) const HTTP2_PIECE: usize = 64 * 1024;

/// The size of the HTTP/2 send buffer of one response.
const HTTP2_BUFFER: usize = 2 * HTTP2_PIECE;

/// How long a peer that has closed its side is still answered.
const GOODBYE_WITHIN: Duration = Duration::from_secs(5);

pub(super) async fn serve(stream: TcpStream, address: SocketAddr, serving: Arc<Serving>) {
    if let Err(error) = stream.set_nodelay(true) {
        return debug!(%address, %error, "client closed the connection before it was set up");
    }

    let socket = Arc::new(stream);
    let stream = match tokio::time::timeout(HANDSHAKE_WITHIN, handshake(&socket, &serving)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            serving.chain.metrics.counted.handshake_errors.inc();
            return debug!(%address, %error, "TLS handshake failed");
        }
        Err(_) => {
            serving.chain.metrics.counted.handshake_errors.inc();
            return debug!(%address, "TLS handshake timed out");
        }
    };

    let session = stream.get_ref().1;
    let peer = Peer::new(session.peer_certificates().unwrap_or_default().to_vec());

    let is_http2 = session.alpn_protocol() == Some(b"h2");
    let pace = Pace::new(!is_http2);

    let (enough, peer) = (Arc::new(Notify::new()), Arc::new(peer));
    let service = {
        let (chain, pace, enough) = (serving.chain.clone(), pace.clone(), enough.clone());
        let chance = serving.goaway_chance;
        service_fn(move |mut request: Request<Incoming>| {
            if is_http2 && chance > 0.0 && share(chain.world) < chance {
                enough.notify_one();
            }
            request.extensions_mut().insert(ClientAddress(address.ip()));

            let (work, unread) = (pace.request(), pace.answer());
            let sending = Sending { work, unread };
            respond(
                chain.clone(),
                request,
                peer.clone(),
                sending,
                enough.clone(),
            )
        })
    };

    let stream = TokioIo::new(Paced {
        stream,
        pace: pace.clone(),
    });

    let result = if is_http2 {
        let mut builder = http2::Builder::new(TokioExecutor::new());
        let streams = serving.http2_streams;
        builder
            .timer(TokioTimer::new())
            .max_header_list_size(MAX_HEADERS)
            .max_concurrent_streams(streams)
            .max_send_buf_size(HTTP2_BUFFER);

        builder.initial_stream_window_size(STREAM_WINDOW);
        builder.initial_connection_window_size(STREAM_WINDOW.saturating_mul(streams));
        let served = builder.serve_connection(stream, service);

        until_enough(served, &serving, &pace, &enough, pending()).await
    } else {
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(None)
            .max_headers(MAX_HEADER_COUNT);

        builder
            .max_buf_size(MAX_HEADERS as usize + 4096)
            .half_close(true);
        let served = builder.serve_connection(stream, service).with_upgrades();

        until_enough(served, &serving, &pace, &enough, peer_ended(&socket)).await
    };

    if let Err(error) = result {
        debug!(%address, %error, "connection ended");
    }
}

/// A random number from 0 to 1.
fn share(world: World) -> f64 {
    let random = u32::try_from((world.random)() >> 32).unwrap_or_default();
    f64::from(random) / f64::from(u32::MAX)
}

async fn handshake(socket: &Arc<TcpStream>, serving: &Serving) -> io::Result<TlsStream<Socket>> {
    if begins_in_plain_http(socket).await? {
        ask_for_tls(socket).await?;
        return Err(io::Error::new(io::ErrorKind::InvalidData, "plain HTTP"));
    }
    let unsent = |session: &mut ServerConnection| session.set_buffer_limit(Some(MAX_UNSENT));
    serving
        .acceptor
        .accept_with(Socket(socket.clone()), unsent)
        .await
}

/// Passes a request to the chain; it is in flight until its response has been sent.
async fn respond(
    chain: Arc<Chain>,
    request: Request<Incoming>,
    peer: Arc<Peer>,
    mut sending: Sending,
    enough: Arc<Notify>,
) -> Result<Response<Leaving>, Infallible> {
    let fits = header_bytes(&request) <= MAX_HEADERS as usize;
    let is_head = request.method() == Method::HEAD;
    let (request, left) = arriving(request);
    let mut answer = match fits {
        true => chain.answer(request, &peer).await,
        false => too_many_headers(),
    };

    if let Some(left) = left
        && !left.settle(&sending.work).await
    {
        answer
            .headers_mut()
            .insert(header::CONNECTION, HeaderValue::from_static("close"));
    }

    let measured = answer.extensions_mut().remove::<Arc<Measured>>();
    let reservation = answer.extensions_mut().remove::<Arc<Reservation>>();

    if answer.extensions().get::<LastAnswer>().is_some() {
        enough.notify_one();
    }
    if is_head {
        answer = answer::without_body(answer);
    }

    sending.unread.begin();
    Ok(answer.map(|body| Leaving {
        body,
        rest: Bytes::new(),
        measured,
        unread: sending.unread,
        _reservation: reservation,
        _work: sending.work,
    }))
}

/// HTTP/1.1 is read in pieces that may be larger than what is allowed, so what came is counted.
fn header_bytes(request: &Request<Incoming>) -> usize {
    let fields = request
        .headers()
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + 4);
    request
        .uri()
        .path_and_query()
        .map_or(0, |path| path.as_str().len())
        + fields.sum::<usize>()
}

fn too_many_headers() -> answer::Answer {
    let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
    let mut answer = answer::text(status, "431 Request Header Fields Too Large");
    answer.extensions_mut().insert(LastAnswer);
    answer
}

/// What a connection notes of a request while it is answered.
struct Sending {
    work: RequestGuard,
    unread: Unread,
}

/// The body of a response that is being sent.
struct Leaving {
    body: answer::Body,
    /// What is left of the last piece of the body.
    rest: Bytes,
    measured: Option<Arc<Measured>>,
    unread: Unread,
    _reservation: Option<Arc<Reservation>>,
    _work: RequestGuard,
}

impl Leaving {
    /// The next piece, no longer than one that shows whether the client reads.
    fn poll_piece(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, answer::BrokenOff>>> {
        if self.rest.is_empty() {
            let frame = match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => frame,
                other => return Poll::Ready(other),
            };
            match frame.into_data() {
                Ok(data) => self.rest = data,
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            }
        }

        let length = self.rest.len().min(self.unread.longest_piece());
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(length)))))
    }
}

impl Body for Leaving {
    type Data = Bytes;
    type Error = answer::BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, answer::BrokenOff>>> {
        let polled = self.poll_piece(context);
        self.unread.polled(&polled);
        if let (Poll::Ready(Some(Ok(frame))), Some(measured)) = (&polled, &self.measured) {
            measured.sent(frame.data_ref().map_or(0, Bytes::len));
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = self.body.size_hint();
        let rest = self.rest.len() as u64;
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + rest);
        }
        hint.set_lower(hint.lower() + rest);
        hint
    }
}

/// A connection in either version of HTTP.
trait HttpConnection: Future<Output = hyper::Result<()>> {
    /// Pending requests are answered, and no more are accepted.
    fn finish(self: Pin<&mut Self>);
}

type Stream = TokioIo<Paced<TlsStream<Socket>>>;

impl<S> HttpConnection for http1::UpgradeableConnection<Stream, S>
where
    S: Service<Request<Incoming>, Response = Response<Leaving>, Error = Infallible>,
{
    fn finish(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

impl<S> HttpConnection for http2::Connection<Stream, S, TokioExecutor>
where
    S: Service<
            Request<Incoming>,
            Response = Response<Leaving>,
            Error = Infallible,
            Future: Send + 'static,
        >,
{
    fn finish(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

/// How a connection ends that could go on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Now,
    AfterAnswers,
}

/// Carries on a connection until it ends, patience ends, or the server does.
async fn until_enough(
    connection: impl HttpConnection,
    serving: &Serving,
    pace: &Pace,
    enough: &Notify,
    peer_ended: impl Future<Output = ()>,
) -> hyper::Result<()> {
    tokio::pin!(connection);

    // Polled only when it is woken itself, not each time the connection is.
    let end = async {
        tokio::select! {
            biased;
            () = async { peer_ended.await; tokio::time::sleep(GOODBYE_WITHIN).await } => End::Now,
            () = enough.notified() => End::AfterAnswers,
            () = serving.chain.lifecycle.draining() => End::AfterAnswers,
        }
    };

    let mut end = FuturesUnordered::from_iter([end]);
    tokio::select! {
        biased;
        result = connection.as_mut() => return result,
        why = timed_out(pace) => {
            if why != TimeoutCause::Idle {
                return Ok(());
            }
        }
        why = end.next() => {
            if why == Some(End::Now) {
                return Ok(());
            }
        }
    }

    connection.as_mut().finish();

    tokio::select! {
        biased;
        result = connection => result,
        _ = timed_out(pace) => Ok(()),
    }
}

/// Resolves when it ends.
async fn timed_out(pace: &Pace) -> TimeoutCause {
    let mut timer: Option<Pin<Box<Sleep>>> = None;
    poll_fn(|context| {
        pace.wake(context.waker());

        loop {
            let Some((at, why)) = pace.ends() else {
                return Poll::Pending;
            };
            let timer = timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at)));

            // A timer that fires too early costs less than resetting it at every request.
            if at < timer.deadline() {
                timer.as_mut().reset(at);
            }
            if timer.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            if at <= Instant::now() {
                return Poll::Ready(why);
            }

            timer.as_mut().reset(at);
        }
    })
    .await
}
