//! A connection to one supervisor: requests and their replies, and unsolicited events.
//!
//! A connected supervisor need not respond at once: it may be stopped, or blocked on a disk. Until
//! it has reported its containers ([`Handshake`]), requests wait, up to the request timeout.

use std::collections::HashMap;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

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

/// How long a supervisor may take for anything but running a program.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) type Answer = (Reply, Vec<OwnedFd>);
type Waiting = Arc<Mutex<HashMap<u64, mpsc::UnboundedSender<Answer>>>>;

/// What a supervisor tells by itself.
#[derive(Debug)]
pub(crate) enum News {
    Exited {
        container: String,
        exit: Exit,
    },
    /// It is gone, and nobody asked it to.
    Gone,
}

pub(crate) struct Supervisor {
    socket: Arc<AsyncFd<OwnedFd>>,
    next: AtomicU64,
    waiting: Waiting,
    reader: JoinHandle<()>,
    acquaintance: Arc<watch::Sender<Acquaintance>>,
}

/// How well we know a supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Acquaintance {
    /// It was reached, and has not answered yet.
    Reached,
    /// What it holds is known.
    Met,
    /// Nobody is at the other end any more.
    Gone,
}

/// What a supervisor that was reached will say of itself.
pub(crate) struct Introduction {
    answers: mpsc::UnboundedReceiver<Answer>,
}

impl Introduction {
    /// Waits for it, however long that takes; an error when it is gone before.
    pub(crate) async fn heard(mut self) -> Result<Vec<ContainerReport>, Error> {
        match self.answers.recv().await {
            // A supervisor of a later version speaks the earlier ones too, and one of an earlier
            // version is spoken to in its own: so far there is one.
            Some((Reply::Welcome { containers, .. }, _)) => Ok(containers),
            Some(_) => Err(Error::SupervisorSilent),
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
    /// Waits for its exit code; none when nobody knows any more.
    pub(crate) async fn ended(&mut self) -> Option<i32> {
        match self.answers.recv().await {
            Some((Reply::ExecExited { code }, _)) => Some(code),
            _ => None,
        }
    }
}

impl Supervisor {
    /// Connects to the supervisor in a folder, and asks what it holds.
    pub(crate) async fn reach(
        folder: &Path,
        news: mpsc::UnboundedSender<News>,
    ) -> Result<(Self, Introduction), Error> {
        let socket = sys::watch(dial(folder)?)
            .map_err(Error::io("watch the socket of the supervisor in", folder))?;
        let socket = Arc::new(socket);
        let waiting = Waiting::default();

        let acquaintance = Arc::new(watch::Sender::new(Acquaintance::Reached));
        let reader = tokio::spawn(read(
            Arc::clone(&socket),
            Arc::clone(&waiting),
            Arc::clone(&acquaintance),
            news,
        ));

        let supervisor = Self {
            socket,
            next: AtomicU64::new(1),
            waiting,
            reader,
            acquaintance,
        };
        let (_, answers) = supervisor.send(Request::Hello {}, &[]).await?;

        Ok((supervisor, Introduction { answers }))
    }

    /// What it holds is known: from now on requests are sent.
    pub(crate) fn introduced(&self) {
        self.acquaintance.send_if_modified(|state| {
            let news = *state == Acquaintance::Reached;
            if news {
                *state = Acquaintance::Met;
            }
            news
        });
    }

    /// Waits until it is met, for as long as a supervisor may take for anything.
    pub(crate) async fn met(&self) -> Result<(), Error> {
        let mut states = self.acquaintance.subscribe();
        let answered = states.wait_for(|state| *state != Acquaintance::Reached);
        match tokio::time::timeout(PATIENCE, answered)
            .await
            .map(|state| state.map(|state| *state))
        {
            Err(_) => Err(Error::SupervisorSilent),
            Ok(Ok(Acquaintance::Met)) => Ok(()),
            Ok(_) => Err(Error::SupervisorGone),
        }
    }

    /// Sends a request and waits for its reply.
    pub(crate) async fn call(
        &self,
        request: Request,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<Answer, Error> {
        self.met().await?;
        self.call_at_once(request, descriptors).await
    }

    /// The same to one that we may still be getting to know.
    pub(crate) async fn call_at_once(
        &self,
        request: Request,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<Answer, Error> {
        let (number, mut answers) = self.send(request, descriptors).await?;
        let answer = tokio::time::timeout(PATIENCE, answers.recv()).await;
        self.forget(number);
        match answer {
            Err(_) => Err(Error::SupervisorSilent),
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
        self.met().await?;
        let (number, mut answers) = self.send(request, descriptors).await?;
        match tokio::time::timeout(PATIENCE, answers.recv()).await {
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
                Err(Error::SupervisorSilent)
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
        self.waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(number, sender);

        let message = encode(&FromRuntime { number, request });
        let send = |socket: &OwnedFd| socket::send(socket, &message, descriptors);
        if self
            .socket
            .async_io(Interest::WRITABLE, send)
            .await
            .is_err()
            || self.is_gone()
        {
            self.acquaintance.send_replace(Acquaintance::Gone);
            self.forget(number);
            return Err(Error::SupervisorGone);
        }

        Ok((number, answers))
    }

    /// Whether it is known to be gone.
    pub(crate) fn is_gone(&self) -> bool {
        *self.acquaintance.borrow() == Acquaintance::Gone
    }

    fn forget(&self, number: u64) {
        self.waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&number);
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

/// Hands replies to who waits for them, until the supervisor is gone.
async fn read(
    socket: Arc<AsyncFd<OwnedFd>>,
    waiting: Waiting,
    acquaintance: Arc<watch::Sender<Acquaintance>>,
    news: mpsc::UnboundedSender<News>,
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
            // Nobody listens when the runtime goes away; the exit is written down.
            news.send(News::Exited { container, exit })
                .unwrap_or_default();
            continue;
        }

        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let last = matches!(reply, Reply::ExecExited { .. } | Reply::Welcome { .. });

        if let Some(sender) = waiting.get(&number) {
            sender.send((reply, descriptors)).unwrap_or_default();
        }
        if last {
            waiting.remove(&number);
        }
    }

    acquaintance.send_replace(Acquaintance::Gone);
    waiting
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clear();

    news.send(News::Gone).unwrap_or_default();
}
