//! Streams of processes: terminals, and output collected for ExecSync.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use coracle_cri::streaming::TerminalSize;
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};
use tokio::net::unix::pipe;
use tokio::sync::mpsc;

use crate::error::Error;
use crate::sys;

/// The limit of collected output per stream; the rest is discarded.
const MOST_COLLECTED: usize = 16 << 20;

/// One side of a terminal: both halves read and write the same descriptor.
pub(crate) struct Terminal {
    descriptor: Arc<AsyncFd<OwnedFd>>,
}

impl Terminal {
    /// Two halves of a terminal, the first to read from, the second to write to.
    pub(crate) fn new(terminal: OwnedFd) -> Result<(Self, Self), Error> {
        let failed = |error: io::Error| Error::io("watch", "a terminal".as_ref())(error);
        rustix::io::ioctl_fionbio(&terminal, true).map_err(|errno| failed(errno.into()))?;
        let descriptor = Arc::new(sys::watch(terminal).map_err(failed)?);
        Ok((
            Self {
                descriptor: Arc::clone(&descriptor),
            },
            Self { descriptor },
        ))
    }

    /// A copy of the descriptor, to set the size by.
    pub(crate) fn descriptor(&self) -> Result<OwnedFd, Error> {
        self.descriptor
            .get_ref()
            .try_clone()
            .map_err(Error::io("copy", "a terminal".as_ref()))
    }
}

impl AsyncRead for Terminal {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut guard = ready!(self.descriptor.poll_read_ready(context))?;
            let space = buffer.initialize_unfilled();

            let read =
                guard.try_io(|terminal| Ok(rustix::io::read(terminal.get_ref().as_fd(), space)?));
            match read {
                Err(_would_block) => {}
                Ok(Ok(count)) => {
                    buffer.advance(count);
                    return Poll::Ready(Ok(()));
                }
                // A terminal returns EIO after the last program has closed it.
                Ok(Err(error)) if error.raw_os_error() == Some(libc::EIO) => {
                    return Poll::Ready(Ok(()));
                }
                Ok(Err(error)) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for Terminal {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            let mut guard = ready!(self.descriptor.poll_write_ready(context))?;
            let written =
                guard.try_io(|terminal| Ok(rustix::io::write(terminal.get_ref().as_fd(), bytes)?));
            if let Ok(result) = written {
                return Poll::Ready(result);
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Applies new terminal sizes until the sender is dropped.
pub(crate) fn resizer(terminal: OwnedFd) -> mpsc::Sender<TerminalSize> {
    let (sender, mut sizes) = mpsc::channel::<TerminalSize>(4);
    tokio::spawn(async move {
        while let Some(size) = sizes.recv().await {
            let size = Winsize {
                ws_row: size.rows,
                ws_col: size.columns,
                ws_xpixel: 0,
                ws_ypixel: 0,
            };
            // Fails after the program has exited.
            tcsetwinsize(&terminal, size).unwrap_or_default();
        }
    });

    sender
}

/// A stream whose content is collected, up to a limit.
pub(crate) struct Collected {
    source: pipe::Receiver,
    content: Vec<u8>,
}

impl Collected {
    pub(crate) fn new(source: pipe::Receiver) -> Self {
        Self {
            source,
            content: Vec::new(),
        }
    }

    /// Reads to the end. Cancel-safe.
    pub(crate) async fn fill(&mut self) {
        let mut chunk = vec![0; 32 << 10];
        while let Ok(count @ 1..) = self.source.read(&mut chunk).await {
            self.keep(&chunk[..count]);
        }
    }

    /// Reads what is available now.
    pub(crate) fn drain(&mut self) {
        let mut chunk = vec![0; 32 << 10];
        // Reads the descriptor directly: tokio's readiness may be stale.
        while let Ok(count @ 1..) = rustix::io::read(&self.source, &mut chunk) {
            self.keep(&chunk[..count]);
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = MOST_COLLECTED - self.content.len();
        self.content
            .extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    pub(crate) fn into_bytes<B: From<Vec<u8>>>(self) -> B {
        self.content.into()
    }
}
