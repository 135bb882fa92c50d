//! The timeouts of a connection: how long headers may take, how long a connection may be idle, how
//! long a response may wait to be read.
//!
//! [`Paced`] is the stream of a connection that notes when bytes arrive and when they cannot be
//! sent; [`Pace`] counts the requests in flight and computes when a timeout ends. No timer runs for
//! a connection that is busy.

use std::collections::BTreeSet;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll};
use std::time::Duration;

use coracle_base::sync::Mutex;
use futures_util::task::AtomicWaker;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::connection::HTTP2_PIECE;

/// From the first byte of a request to the end of its headers.
pub(super) const HEADERS_WITHIN: Duration = Duration::from_secs(32);

/// Between requests.
pub(super) const IDLE_FOR: Duration = Duration::from_secs(90);

/// How long a peer may read nothing.
pub(super) const UNREAD_FOR: Duration = Duration::from_secs(60);

/// Why a connection is not waited for any longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeoutCause {
    Headers,
    Idle,
    Unread,
}

/// The activity of a connection. Times are milliseconds since it began, plus one; zero: not active.
pub(super) struct Pace {
    began: Instant,
    requests: AtomicUsize,
    idle_since: AtomicU64,
    headers_since: AtomicU64,
    unread_since: AtomicU64,
    /// HTTP/1.1. HTTP/2 also sends frames between requests, so bytes need not be headers, and
    /// requests end in other tasks.
    one_by_one: bool,
    waker: AtomicWaker,
    /// HTTP/2 responses whose next bytes the client has not requested: since when, and which.
    unread: Mutex<BTreeSet<(u64, u64)>>,
    answers: AtomicU64,
}

impl Pace {
    pub(super) fn new(one_by_one: bool) -> Arc<Pace> {
        Arc::new(Pace {
            began: Instant::now(),
            requests: AtomicUsize::new(0),
            idle_since: AtomicU64::new(1),
            headers_since: AtomicU64::new(0),
            unread_since: AtomicU64::new(0),
            one_by_one,
            waker: AtomicWaker::new(),
            unread: Mutex::default(),
            answers: AtomicU64::new(0),
        })
    }

    /// A request has arrived; it is in flight until the guard is dropped.
    pub(super) fn request(self: &Arc<Pace>) -> RequestGuard {
        self.requests.fetch_add(1, Ordering::AcqRel);
        self.idle_since.store(0, Ordering::Release);
        self.headers_since.store(0, Ordering::Release);
        RequestGuard(self.clone())
    }

    /// A response to a request. Over HTTP/1.1 the connection itself shows whether it is read.
    pub(super) fn answer(self: &Arc<Pace>) -> Unread {
        Unread {
            pace: (!self.one_by_one).then(|| self.clone()),
            id: self.answers.fetch_add(1, Ordering::Relaxed),
            since: 0,
        }
    }

    /// When patience ends if nothing else happens, and why.
    pub(super) fn ends(&self) -> Option<(Instant, TimeoutCause)> {
        let after = |moment: &AtomicU64, within: Duration, why| {
            let since = moment.load(Ordering::Acquire).checked_sub(1)?;
            Some((self.began + Duration::from_millis(since) + within, why))
        };
        let oldest_unread = self.unread().first().map(|(since, _)| *since);

        [
            after(&self.headers_since, HEADERS_WITHIN, TimeoutCause::Headers),
            after(&self.idle_since, IDLE_FOR, TimeoutCause::Idle),
            after(&self.unread_since, UNREAD_FOR, TimeoutCause::Unread),
            oldest_unread.map(|since| (self.at(since) + UNREAD_FOR, TimeoutCause::Unread)),
        ]
        .into_iter()
        .flatten()
        .min_by_key(|(at, _)| *at)
    }

    /// The task to wake when a connection becomes idle.
    pub(super) fn wake(&self, waker: &std::task::Waker) {
        self.waker.register(waker);
    }

    fn at(&self, moment: u64) -> Instant {
        self.began + Duration::from_millis(moment - 1)
    }

    fn unread(&self) -> MutexGuard<'_, BTreeSet<(u64, u64)>> {
        self.unread.lock()
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1
    }

    fn bytes_came(&self) {
        if self.one_by_one
            && self.requests.load(Ordering::Acquire) == 0
            && self.headers_since.load(Ordering::Acquire) == 0
        {
            self.headers_since.store(self.now(), Ordering::Release);
        }
    }

    fn write_ended(&self, taken: bool) {
        if taken {
            self.unread_since.store(0, Ordering::Release);
        } else if self.unread_since.load(Ordering::Acquire) == 0 {
            self.unread_since.store(self.now(), Ordering::Release);
        }
    }
}

/// A request in flight.
pub(super) struct RequestGuard(Arc<Pace>);

impl RequestGuard {
    /// Other work for it, which may take longer.
    pub(super) fn another(&self) -> RequestGuard {
        self.0.request()
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        if self.0.requests.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.idle_since.store(self.0.now(), Ordering::Release);
            // In HTTP/1.1 the task that waits also completes the request, and need not be woken.
            if !self.0.one_by_one {
                self.0.waker.wake();
            }
        }
    }
}

/// Tracks whether the client reads a response. HTTP/2 polls a body only while the client's window
/// has space, so a response that is not polled is not read.
pub(super) struct Unread {
    pace: Option<Arc<Pace>>,
    id: u64,
    /// Zero: the client waits for the server.
    since: u64,
}

impl Unread {
    /// The response begins: its first bytes can be read.
    pub(super) fn begin(&mut self) {
        self.wait_for_client();
    }

    /// The most bytes to return at once.
    pub(super) fn longest_piece(&self) -> usize {
        match self.pace {
            Some(_) => HTTP2_PIECE,
            None => usize::MAX,
        }
    }

    /// The client's window had space, and this was returned.
    pub(super) fn polled<T>(&mut self, polled: &Poll<T>) {
        self.wait_for_server();
        if polled.is_ready() {
            self.wait_for_client();
        }
    }

    fn wait_for_client(&mut self) {
        let Some(pace) = &self.pace else { return };
        self.since = pace.now();

        let mut unread = pace.unread();
        let was_empty = unread.is_empty();
        unread.insert((self.since, self.id));
        drop(unread);
        if was_empty {
            pace.waker.wake();
        }
    }

    fn wait_for_server(&mut self) {
        if let Some(pace) = self.pace.as_ref().filter(|_| self.since != 0) {
            pace.unread().remove(&(self.since, self.id));
            self.since = 0;
        }
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        self.wait_for_server();
    }
}

/// The stream of a connection.
pub(super) struct Paced<S> {
    pub(super) stream: S,
    pub(super) pace: Arc<Pace>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.pace.bytes_came();
        }
        result
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.pace.write_ended(result.is_ready());
        result
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_flush(context);
        self.pace.write_ended(result.is_ready());
        result
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_shutdown(context);
        self.pace.write_ended(result.is_ready());
        result
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.pace.write_ended(result.is_ready());
        result
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_answer_of_http2_that_is_not_read_ends_the_connection() {
        let pace = Pace::new(false);
        let _work = pace.request();
        let (mut read, mut unread) = (pace.answer(), pace.answer());
        read.begin();
        unread.begin();
        let begin = Instant::now();

        // One response makes progress, the other does not.
        tokio::time::advance(UNREAD_FOR / 2).await;
        read.polled(&Poll::Ready(()));
        assert_eq!(
            pace.ends(),
            Some((begin + UNREAD_FOR, TimeoutCause::Unread))
        );

        // A watch that waits for events is read.
        unread.polled(&Poll::<()>::Pending);
        let later = begin + UNREAD_FOR / 2 + UNREAD_FOR;
        assert_eq!(pace.ends(), Some((later, TimeoutCause::Unread)));
        drop(read);
        assert_eq!(pace.ends(), None);
    }
}
