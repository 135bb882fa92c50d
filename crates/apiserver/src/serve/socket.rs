//! The socket of a connection, shared: HTTP reads and writes it, and beside that the server notices
//! when the peer has closed its side.
//!
//! A peer may close its side and still wait for a response. So the end of what it sends is not the
//! end of the connection, and the writer of an endless response would not notice that the peer has
//! closed: this module does.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

/// There is unread data, whose end cannot be seen: look again after this.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

pub(super) struct Socket(pub(super) Arc<TcpStream>);

/// Whether the peer sends plain HTTP, by the same test as Go's server. Waits for its first bytes,
/// which stay unread.
pub(super) async fn begins_in_plain_http(socket: &TcpStream) -> io::Result<bool> {
    let mut first = [0; 5];
    socket.peek(&mut first).await?;
    Ok(matches!(
        &first,
        b"GET /" | b"HEAD " | b"POST " | b"PUT /" | b"OPTIO"
    ))
}

/// Answers a plain HTTP request that TLS is required, with Go's text.
pub(super) async fn ask_for_tls(socket: &TcpStream) -> io::Result<()> {
    // If the connection were closed with unread data, it would be reset, and the peer might not get
    // the response.
    let mut unread = [0; 4096];
    while matches!(socket.try_read(&mut unread), Ok(count) if count > 0) {}
    socket.writable().await?;
    socket.try_write(PLAIN_HTTP).map(drop)
}

const PLAIN_HTTP: &[u8] =
    b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";

/// Resolves when the peer will send nothing more.
pub(super) async fn peer_ended(socket: &TcpStream) {
    loop {
        match socket.ready(Interest::READABLE).await {
            Ok(ready) if !ready.is_read_closed() => tokio::time::sleep(LOOK_AGAIN).await,
            _ => return,
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.0.poll_read_ready(context))?;
            match self.0.try_read(buffer.initialize_unfilled()) {
                Ok(count) => {
                    buffer.advance(count);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.when_writable(context, |socket| socket.try_write(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.when_writable(context, |socket| socket.try_write_vectored(bytes))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(
            rustix::net::shutdown(&*self.0, rustix::net::Shutdown::Write).map_err(io::Error::from),
        )
    }
}

impl Socket {
    fn when_writable(
        &self,
        context: &mut Context<'_>,
        write: impl Fn(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.0.poll_write_ready(context))?;
            match write(&self.0) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done),
            }
        }
    }
}
