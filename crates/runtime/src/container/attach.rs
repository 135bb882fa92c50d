//! Attach: the streams of a container's first process.

use std::os::fd::{AsFd as _, OwnedFd};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use coracle_cri::streaming::{Session, Writer};
use coracle_cri::v1::AttachRequest;
use coracle_supervisor::protocol::{Reply, Request};
use tokio::io::AsyncWrite;
use tokio::net::unix::pipe;
use tokio::sync::oneshot;

use super::detaching;
use super::exec::output;
use super::{Container, State};
use crate::error::Error;
use crate::node::Node;
use crate::streams::{Terminal, resizer};
use crate::supervise::Supervisor;

impl Node {
    pub(crate) async fn attach(
        self: &Arc<Self>,
        request: &AttachRequest,
    ) -> Result<Session, Error> {
        let container = self.container(&request.container_id)?;
        if container.state() != State::Running {
            return Err(Error::WrongState(format!(
                "container {:?} is not running",
                container.id
            )));
        }

        let supervisor = self.supervisor_of(&container.sandbox).await?;
        let record = container.record();
        let wanted = [request.stdout, request.stderr && !record.config.tty];
        let (stdout, their_stdout) = output(wanted[0])?;
        let (stderr, their_stderr) = output(wanted[1])?;

        let sinks = [(wanted[0], &their_stdout), (wanted[1], &their_stderr)];
        let sinks: Vec<_> = sinks
            .iter()
            .filter(|(wanted, _)| *wanted)
            .map(|(_, sink)| sink.as_fd())
            .collect();

        let message = Request::Attach {
            container: container.id.clone(),
            stdout: wanted[0],
            stderr: wanted[1],
        };
        let (reply, mut input) = supervisor.call(message, &sinks).await?;
        let terminal = matches!(reply, Reply::Attached { terminal: true });

        let (mut stdin, mut resize) = (None, None);
        if let Some(input) = input.pop() {
            if terminal {
                let (_, writer) = Terminal::new(input)?;
                resize = Some(resizer(writer.descriptor()?));
                stdin = request.stdin.then(|| Box::pin(writer) as Writer);
            } else if request.stdin {
                let node = Arc::downgrade(self);
                let once = record
                    .config
                    .stdin_once
                    .then(|| (node, supervisor, Arc::clone(&container)));
                stdin = Some(Box::pin(Input::new(input, once)?) as Writer);
            }
        }

        let session = Session {
            stdin,
            stdout,
            stderr,
            resize,
            exit: exit_of(container),
        };

        // With `stdin_once` the container's input ends with this client, which then reads the rest
        // of the output. Otherwise the session ends with the client's input, and the container
        // keeps running.
        let ends_for_good = record.config.stdin_once && !record.config.tty;

        Ok(if ends_for_good {
            session
        } else {
            detaching::end_with_input(session)
        })
    }
}

fn exit_of(container: Arc<Container>) -> oneshot::Receiver<i32> {
    let (sender, exit) = oneshot::channel();
    tokio::spawn(async move {
        let code = container.ended().await.code;
        // The client may have disconnected.
        sender.send(code).unwrap_or_default();
    });
    exit
}

/// A container's input. With `stdin_once` it is closed when the first client detaches.
struct Input {
    pipe: pipe::Sender,
    once: Option<Once>,
}

/// What is notified when the input is closed.
type Once = (Weak<Node>, Arc<Supervisor>, Arc<Container>);

impl Input {
    fn new(input: OwnedFd, once: Option<Once>) -> Result<Self, Error> {
        let pipe =
            pipe::Sender::from_owned_fd(input).map_err(Error::io("watch", "a pipe".as_ref()))?;
        Ok(Self { pipe, once })
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        if let Some((node, supervisor, container)) = self.once.take() {
            if let Some(node) = node.upgrade() {
                node.close_input(&container);
            }
            let request = Request::CloseStdin {
                container: container.id.clone(),
            };
            tokio::spawn(async move { supervisor.call(request, &[]).await.map(drop) });
        }
    }
}

impl AsyncWrite for Input {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.get_mut().pipe).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.get_mut().pipe).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.get_mut().pipe).poll_shutdown(context)
    }
}
