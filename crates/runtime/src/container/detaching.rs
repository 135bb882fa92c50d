//! An attach session that ends with its input: its output ends at the same time, with exit code 0.

use std::pin::Pin;
use std::task::{Context, Poll};

use coracle_cri::streaming::{Reader, Session, Writer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{oneshot, watch};

/// Makes a session end with its input. One without an input is returned unchanged.
pub(super) fn end_with_input(session: Session) -> Session {
    let Session {
        stdin: Some(stdin),
        stdout,
        stderr,
        resize,
        exit,
    } = session
    else {
        return session;
    };

    let (attached, seen) = watch::channel(());
    let until = |reader: Reader| {
        Box::pin(Output {
            reader,
            detached: detached(seen.clone()),
        }) as Reader
    };

    Session {
        stdin: Some(Box::pin(Input {
            writer: stdin,
            _attached: attached,
        })),
        stdout: stdout.map(until),
        stderr: stderr.map(until),
        resize,
        exit: first_exit(exit, detached(seen.clone())),
    }
}

type Detached = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Resolves when the sender is dropped, with the input.
fn detached(mut attached: watch::Receiver<()>) -> Detached {
    Box::pin(async move { while attached.changed().await.is_ok() {} })
}

/// The exit code of the process, or 0 if the session ends first.
fn first_exit(exit: oneshot::Receiver<i32>, detached: Detached) -> oneshot::Receiver<i32> {
    let (sender, either) = oneshot::channel();
    tokio::spawn(async move {
        let code = tokio::select! {
            biased;
            code = exit => code,
            () = detached => Ok(0),
        };

        // Dropped if the code is unknown, like the receiver it replaces. The client may have
        // disconnected.
        if let Ok(code) = code {
            sender.send(code).unwrap_or_default();
        }
    });

    either
}

struct Input {
    writer: Writer,
    _attached: watch::Sender<()>,
}

impl AsyncWrite for Input {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        self.writer.as_mut().poll_write(context, bytes)
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        self.writer.as_mut().poll_flush(context)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        self.writer.as_mut().poll_shutdown(context)
    }
}

/// Output that ends with the session.
struct Output {
    reader: Reader,
    detached: Detached,
}

impl AsyncRead for Output {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        // After its end the future must not be polled again.
        match self.detached.as_mut().poll(context) {
            Poll::Ready(()) => {
                self.detached = Box::pin(std::future::ready(()));
                Poll::Ready(Ok(()))
            }
            Poll::Pending => self.reader.as_mut().poll_read(context, buffer),
        }
    }
}
