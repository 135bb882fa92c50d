//! The incoming body of a request, and what happens to the part that is not read.
//!
//! In HTTP/1.1 the next request follows the body of this one, and a client that writes a whole body
//! before it reads loses the response if the connection is closed meanwhile. So [`IncomingBody`] leaves
//! what the chain has not read in [`UnreadBody`], for when there is a response: a short rest is read
//! before the response is sent, and the connection continues; a long one is read, up to a bound,
//! while the response is sent, and the connection ends.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use coracle_base::sync::Mutex;
use http::{HeaderValue, Request, Version, header};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::pace::RequestGuard;

/// A rest of so many bytes is read for the sake of the connection.
const SHORT_REST: u64 = 256 * 1024;

/// How long a response waits for that.
const SHORT_REST_WITHIN: Duration = Duration::from_secs(3);

/// The most of a longer rest that is read, so that the client gets the response: all of a body that
/// is not much too large.
const LONG_REST: u64 = 4 << 20;

/// How long that may take.
const LONG_REST_WITHIN: Duration = Duration::from_secs(5);

/// The body of a request.
pub(super) struct IncomingBody {
    /// Nothing once it has ended.
    body: Option<Incoming>,
    /// The client waits for `100 Continue` before it sends the body.
    unasked: bool,
    left: Option<UnreadBody>,
}

/// Where a body is left when its reader is dropped.
#[derive(Clone, Default)]
pub(super) struct UnreadBody(Arc<Mutex<Option<Rest>>>);

/// The unread part of a body.
struct Rest {
    body: Incoming,
    unasked: bool,
}

/// The same request, and the place of what will be left of its body, if that matters.
pub(super) fn arriving(request: Request<Incoming>) -> (Request<IncomingBody>, Option<UnreadBody>) {
    let matters = request.version() < Version::HTTP_2 && !request.body().is_end_stream();
    let left = matters.then(UnreadBody::default);
    let expects = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"100-continue");
    let unasked = request.headers().get(header::EXPECT).is_some_and(expects);

    (
        request.map(|body| IncomingBody {
            body: Some(body),
            unasked,
            left: left.clone(),
        }),
        left,
    )
}

impl UnreadBody {
    /// Handles the unread rest, now that there is a response; returns whether the connection can
    /// continue.
    pub(super) async fn settle(self, work: &RequestGuard) -> bool {
        let rest = self.0.lock().take();

        // Nothing: all has been read, or it is still being read.
        let Some(Rest { mut body, unasked }) = rest else {
            return true;
        };
        if unasked {
            return false;
        }

        if body.size_hint().lower() <= SHORT_REST
            && reaches_end(&mut body, SHORT_REST, SHORT_REST_WITHIN).await
        {
            return true;
        }

        let work = work.another();
        tokio::spawn(async move {
            reaches_end(&mut body, LONG_REST, LONG_REST_WITHIN).await;
            drop((body, work));
        });

        false
    }
}

/// Reads and discards a body; returns whether it ended within so many bytes and so much time.
async fn reaches_end(body: &mut Incoming, bytes: u64, within: Duration) -> bool {
    let read = async {
        let mut allowed = bytes;
        while let Some(frame) = body.frame().await {
            let came = frame
                .ok()
                .map(|frame| frame.data_ref().map_or(0, Bytes::len) as u64);
            match came.and_then(|came| allowed.checked_sub(came)) {
                Some(rest) => allowed = rest,
                None => return false,
            }
        }

        true
    };

    tokio::time::timeout(within, read).await.unwrap_or(false)
}

impl Body for IncomingBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.unasked = false;
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        let polled = Pin::new(body).poll_frame(context);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.body = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body
            .as_ref()
            .map_or(SizeHint::with_exact(0), Incoming::size_hint)
    }
}

impl Drop for IncomingBody {
    fn drop(&mut self) {
        if let (Some(UnreadBody(left)), Some(body)) = (self.left.take(), self.body.take())
            && !body.is_end_stream()
        {
            let rest = Rest {
                body,
                unasked: self.unasked,
            };
            *left.lock() = Some(rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::Response;
    use http_body_util::Full;
    use hyper::server::conn::http1;
    use hyper::service::service_fn;
    use hyper_util::rt::TokioIo;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    use super::*;
    use crate::serve::pace::Pace;

    /// A connection to a server that refuses every request unread, and sends `close` where the
    /// connection ends.
    fn refusing() -> DuplexStream {
        let (client, server) = duplex(64 * 1024);
        let pace = Pace::new(true);

        let service = service_fn(move |request: Request<Incoming>| {
            let work = pace.request();
            async move {
                let (request, left) = arriving(request);
                drop(request);
                let goes_on = match left {
                    Some(left) => left.settle(&work).await,
                    None => true,
                };

                let mut answer = Response::new(Full::new(Bytes::from_static(b"no")));
                if !goes_on {
                    answer
                        .headers_mut()
                        .insert(header::CONNECTION, HeaderValue::from_static("close"));
                }

                Ok::<_, Infallible>(answer)
            }
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(server), service));

        client
    }

    /// Sends all parts, and only then reads: how many responses there are, and whether the last one
    /// has `close`.
    async fn answers(parts: &[&[u8]], last: bool) -> (usize, bool) {
        let mut client = refusing();
        for part in parts {
            client.write_all(part).await.unwrap();
            client.flush().await.unwrap();
            tokio::task::yield_now().await;
        }

        if last {
            client.shutdown().await.unwrap();
        }

        let mut answers = String::new();
        client.read_to_string(&mut answers).await.unwrap();

        (
            answers.matches("HTTP/1.1 200 OK").count(),
            answers.contains("connection: close"),
        )
    }

    fn post(length: usize, more: &str) -> Vec<u8> {
        format!("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n{more}\r\n").into_bytes()
    }

    #[tokio::test]
    async fn after_a_short_rest_the_connection_continues() {
        let next = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n";
        for length in [2, 1000, 100_000, 256 * 1024] {
            let body = vec![b'x'; length];
            assert_eq!(
                answers(&[&post(length, ""), &body, next], true).await,
                (2, false),
                "{length}"
            );
        }

        let chunked = b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(
            answers(&[chunked, b"2\r\nxx\r\n", b"0\r\n\r\n", next], true).await,
            (2, false)
        );
    }

    #[tokio::test]
    async fn a_long_rest_costs_the_connection_but_not_the_answer() {
        for length in [256 * 1024 + 1, 2_500_000] {
            let body = vec![b'x'; length];
            assert_eq!(
                answers(&[&post(length, ""), &body], false).await,
                (1, true),
                "{length}"
            );
        }

        let chunked = b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
        let chunk = [
            b"100000\r\n".to_vec(),
            vec![b'x'; 1 << 20],
            b"\r\n".to_vec(),
        ]
        .concat();

        assert_eq!(
            answers(&[chunked, &chunk, &chunk, b"0\r\n\r\n"], false).await,
            (1, true)
        );
    }

    #[tokio::test]
    async fn no_continue_is_sent_for_a_body_that_is_not_read() {
        let expecting = post(100, "Expect: 100-continue\r\n");
        assert_eq!(answers(&[&expecting], false).await, (1, true));
    }
}
