//! A connection to one supervisor: requests and their replies, and unsolicited events.
//!
//! A connected supervisor need not respond at once: it may be stopped, or blocked on a disk. Until
//! it has reported its containers ([`Handshake`]), requests wait, up to the request timeout.

use std::collections::HashMap;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use coracle_base::sync::Mutex;
use coracle_supervisor::protocol::{
    ContainerReport, Exit, FromRuntime, FromSupervisor, Reply, Request, decode, encode,
};
use coracle_supervisor::socket;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::program::dial;
use crate::error::Error;
use crate::sys;

/// The timeout of requests.
const TIMEOUT: Duration = Duration::from_secs(30);

pub(super) type Answer = (Reply, Vec<OwnedFd>);
type PendingReplies = Arc<Mutex<HashMap<u64, mpsc::UnboundedSender<Answer>>>>;

/// An unsolicited event.
#[derive(Debug)]
pub(crate) enum SupervisorEvent {
    Exited {
        container: String,
        exit: Exit,
    },
    /// The connection was closed unexpectedly.
    Gone,
}

pub(crate) struct Supervisor {
    socket: Arc<AsyncFd<OwnedFd>>,
    next: AtomicU64,
    pending: PendingReplies,
    reader: JoinHandle<()>,
    state: Arc<watch::Sender<ConnectionState>>,
}

/// The state of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionState {
    /// Connected; the handshake is not complete.
    Connected,
    /// The handshake is complete.
    Ready,
    /// The other side is gone.
    Closed,
}

/// The pending reply to `Hello`: the containers of the supervisor.
pub(crate) struct Handshake {
    answers: mpsc::UnboundedReceiver<Answer>,
}

impl Handshake {
    /// Waits for it without a timeout; an error if the connection closes first.
    pub(crate) async fn complete(mut self) -> Result<Vec<ContainerReport>, Error> {
        match self.answers.recv().await {
            // The version is ignored: so far there is only one.
            Some((Reply::Welcome { containers, .. }, _)) => Ok(containers),
            Some(_) => Err(Error::SupervisorTimeout),
            None => Err(Error::SupervisorGone),
        }
    }
}

/// A process that was started in a container.
pub(crate) struct Exec {
    pub(crate) number: u64,
    pub(crate) terminal: Option<OwnedFd>,
    answers: mpsc::UnboundedReceiver<Answer>,
}

impl Exec {
    /// Waits for its exit code; none if the connection closes first.
    pub(crate) async fn ended(&mut self) -> Option<i32> {
        match self.answers.recv().await {
            Some((Reply::ExecExited { code }, _)) => Some(code),
            _ => None,
        }
    }
}

impl Supervisor {
    /// Connects to the supervisor in a folder, and starts the handshake.
    pub(crate) async fn connect(
        folder: &Path,
        events: mpsc::UnboundedSender<SupervisorEvent>,
    ) -> Result<(Self, Handshake), Error> {
        let socket = sys::watch(dial(folder)?)
            .map_err(Error::io("watch the socket of the supervisor in", folder))?;
        let socket = Arc::new(socket);
        let pending = PendingReplies::default();

        let state = Arc::new(watch::Sender::new(ConnectionState::Connected));
        let reader = tokio::spawn(read(
            Arc::clone(&socket),
            Arc::clone(&pending),
            Arc::clone(&state),
            events,
        ));

        let supervisor = Self {
            socket,
            next: AtomicU64::new(1),
            pending,
            reader,
            state,
        };
        let (_, answers) = supervisor.send(Request::Hello {}, &[]).await?;

        Ok((supervisor, Handshake { answers }))
    }

    /// Marks the handshake as complete: from now on requests are sent.
    pub(crate) fn set_ready(&self) {
        self.state.send_if_modified(|state| {
            let changed = *state == ConnectionState::Connected;
            if changed {
                *state = ConnectionState::Ready;
            }
            changed
        });
    }

    /// Waits for the handshake, up to the request timeout.
    pub(crate) async fn ready(&self) -> Result<(), Error> {
        let mut states = self.state.subscribe();
        let answered = states.wait_for(|state| *state != ConnectionState::Connected);
        match tokio::time::timeout(TIMEOUT, answered)
            .await
            .map(|state| state.map(|state| *state))
        {
            Err(_) => Err(Error::SupervisorTimeout),
            Ok(Ok(ConnectionState::Ready)) => Ok(()),
            Ok(_) => Err(Error::SupervisorGone),
        }
    }

    /// Sends a request and waits for its reply.
    pub(crate) async fn call(
        &self,
        request: Request,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<Answer, Error> {
        self.ready().await?;
        self.call_at_once(request, descriptors).await
    }

    /// The same without waiting for the handshake.
    pub(crate) async fn call_at_once(
        &self,
        request: Request,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<Answer, Error> {
        let (number, mut answers) = self.send(request, descriptors).await?;
        let answer = tokio::time::timeout(TIMEOUT, answers.recv()).await;
        self.forget(number);
        match answer {
            Err(_) => Err(Error::SupervisorTimeout),
            Ok(None) => Err(Error::SupervisorGone),
            Ok(Some((Reply::Failed { failure }, _))) => Err(Error::Refused(failure)),
            Ok(Some(answer)) => Ok(answer),
        }
    }

    /// Starts a process in a container.
    pub(crate) async fn exec(
        &self,
        request: Request,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<Exec, Error> {
        self.ready().await?;
        let (number, mut answers) = self.send(request, descriptors).await?;
        match tokio::time::timeout(TIMEOUT, answers.recv()).await {
            Ok(Some((Reply::ExecStarted { .. }, mut terminal))) => Ok(Exec {
                number,
                terminal: terminal.pop(),
                answers,
            }),
            Ok(Some((Reply::Failed { failure }, _))) => {
                self.forget(number);
                Err(Error::Refused(failure))
            }
            Ok(_) => Err(Error::SupervisorGone),
            Err(_) => {
                self.forget(number);
                Err(Error::SupervisorTimeout)
            }
        }
    }

    async fn send(
        &self,
        request: Request,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(u64, mpsc::UnboundedReceiver<Answer>), Error> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, answers) = mpsc::unbounded_channel();
        self.pending.lock().insert(number, sender);

        let message = encode(&FromRuntime { number, request });
        let send = |socket: &OwnedFd| socket::send(socket, &message, descriptors);
        if self
            .socket
            .async_io(Interest::WRITABLE, send)
            .await
            .is_err()
            || self.is_gone()
        {
            self.state.send_replace(ConnectionState::Closed);
            self.forget(number);
            return Err(Error::SupervisorGone);
        }

        Ok((number, answers))
    }

    /// Whether the connection is closed.
    pub(crate) fn is_gone(&self) -> bool {
        *self.state.borrow() == ConnectionState::Closed
    }

    fn forget(&self, number: u64) {
        self.pending.lock().remove(&number);
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

/// Dispatches replies to the waiting callers, until the connection closes.
async fn read(
    socket: Arc<AsyncFd<OwnedFd>>,
    pending: PendingReplies,
    state: Arc<watch::Sender<ConnectionState>>,
    events: mpsc::UnboundedSender<SupervisorEvent>,
) {
    let receive = |socket: &OwnedFd| socket::receive(socket.as_fd());
    while let Ok(Some((message, descriptors))) = socket.async_io(Interest::READABLE, receive).await
    {
        let Ok(FromSupervisor { number, reply }) = decode(&message) else {
            tracing::warn!(
                bytes = message.len(),
                "cannot decode supervisor message; ignoring it"
            );
            continue;
        };

        if let Reply::Exited { container, exit } = reply {
            // The receiver is gone during shutdown; the exit is on disk.
            events
                .send(SupervisorEvent::Exited { container, exit })
                .unwrap_or_default();
            continue;
        }

        let mut pending = pending.lock();
        let last = matches!(reply, Reply::ExecExited { .. } | Reply::Welcome { .. });

        if let Some(sender) = pending.get(&number) {
            sender.send((reply, descriptors)).unwrap_or_default();
        }
        if last {
            pending.remove(&number);
        }
    }

    state.send_replace(ConnectionState::Closed);
    pending.lock().clear();

    events.send(SupervisorEvent::Gone).unwrap_or_default();
}
