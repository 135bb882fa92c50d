//! Client of the node's keeper: the parent process of all supervisors, which holds copies of the
//! descriptors the runtime holds, so that they survive when runtime and supervisor are killed
//! together.
//!
//! One task talks to it and handles requests in order. The keeper is started with the first
//! supervisor, exits when it holds nothing, and is replaced when it was killed: the runtime and the
//! supervisors still have what it held. A keeper that does not respond is killed: there is never
//! more than one.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::process::Child;
use std::sync::Weak;
use std::time::Duration;

use coracle_files::{private, remove_tree};
use coracle_supervisor::protocol::{Belongings, FromKeeper, ToKeeper, decode, encode};
use coracle_supervisor::socket;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::{mpsc, oneshot};

use super::program::dial;
use crate::node::{Node, blocking};
use crate::sys;

/// The timeout of requests.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The timeout of a keeper that an earlier runtime started: only it has the descriptors.
const HANDOVER_TIMEOUT: Duration = Duration::from_secs(30);

/// Descriptors of a container or sandbox, and their owner.
pub(crate) type Holding = (Belongings, Vec<OwnedFd>);

/// The pid and pidfd of a started process.
pub(crate) type Spawned = (i32, OwnedFd);

/// A handle to the keeper's task.
pub(crate) struct Keeper {
    requests: mpsc::UnboundedSender<KeeperRequest>,
}

enum KeeperRequest {
    Hold(Holding),
    Release {
        owner: String,
        done: Option<oneshot::Sender<()>>,
    },
    Return {
        all: oneshot::Sender<Vec<Holding>>,
    },
    Spawn {
        owner: String,
        words: Vec<String>,
        descriptors: Vec<OwnedFd>,
        spawned: oneshot::Sender<io::Result<Spawned>>,
    },
    ExitCode {
        owner: String,
        code: oneshot::Sender<Option<i32>>,
    },
}

/// The request queue of the keeper's task.
pub(crate) struct KeeperRequests(mpsc::UnboundedReceiver<KeeperRequest>);

impl Keeper {
    pub(crate) fn new() -> (Self, KeeperRequests) {
        let (requests, receiver) = mpsc::unbounded_channel();
        (Self { requests }, KeeperRequests(receiver))
    }

    /// Lets the keeper hold descriptors, replacing those of the same owner.
    pub(crate) fn hold(&self, holding: Holding) {
        self.request(KeeperRequest::Hold(holding));
    }

    /// Releases the descriptors of an owner.
    pub(crate) fn release(&self, owner: &str) {
        self.request(KeeperRequest::Release {
            owner: owner.to_owned(),
            done: None,
        });
    }

    /// The same, and waits for completion.
    pub(crate) async fn release_and_wait(&self, owner: &str) {
        let (done, is_done) = oneshot::channel();
        self.request(KeeperRequest::Release {
            owner: owner.to_owned(),
            done: Some(done),
        });
        is_done.await.unwrap_or_default();
    }

    /// All descriptors held from before a restart.
    pub(crate) async fn take_all(&self) -> Vec<Holding> {
        let (all, answer) = oneshot::channel();
        self.request(KeeperRequest::Return { all });
        answer.await.unwrap_or_default()
    }

    /// Starts a program for an owner: the descriptors are the program, its standard input and its
    /// standard error. Blocks.
    pub(crate) fn spawn(
        &self,
        owner: &str,
        words: Vec<String>,
        descriptors: Vec<OwnedFd>,
    ) -> io::Result<Spawned> {
        let (spawned, answer) = oneshot::channel();
        self.request(KeeperRequest::Spawn {
            owner: owner.to_owned(),
            words,
            descriptors,
            spawned,
        });
        answer
            .blocking_recv()
            .unwrap_or_else(|_| Err(io::ErrorKind::NotConnected.into()))
    }

    /// The exit code of an owner's first process, if it was reparented to the keeper.
    pub(crate) async fn exit_code(&self, owner: &str) -> Option<i32> {
        let (code, answer) = oneshot::channel();
        self.request(KeeperRequest::ExitCode {
            owner: owner.to_owned(),
            code,
        });
        answer.await.unwrap_or_default()
    }

    fn request(&self, request: KeeperRequest) {
        // An observer has no keeper, and a runtime that shuts down needs none.
        self.requests.send(request).unwrap_or_default();
    }
}

/// Handles requests until all handles are dropped.
pub(crate) async fn serve(node: Weak<Node>, folder: PathBuf, mut requests: KeeperRequests) {
    let mut client = KeeperClient {
        node,
        folder,
        link: None,
    };

    loop {
        tokio::select! {
            request = requests.0.recv() => match request {
                Some(request) => client.handle(request).await,
                None => return,
            },
            () = gone(client.link.as_ref()) => client.replace().await,
        }
    }
}

/// Waits for the exit of the keeper.
async fn gone(link: Option<&Link>) {
    match link {
        Some(link) => link.process.readable().await.map(drop).unwrap_or_default(),
        None => std::future::pending().await,
    }
}

struct KeeperClient {
    node: Weak<Node>,
    folder: PathBuf,
    link: Option<Link>,
}

/// A connected keeper.
struct Link {
    socket: AsyncFd<OwnedFd>,
    /// Its pidfd.
    process: AsyncFd<OwnedFd>,
    /// If it is our child, which must be reaped.
    child: Option<Child>,
    /// The owners of what it holds.
    held: BTreeSet<String>,
}

impl KeeperClient {
    async fn handle(&mut self, request: KeeperRequest) {
        // The receiver of a result may be gone.
        let done = match request {
            KeeperRequest::Hold(holding) => self.hold(holding).await,
            KeeperRequest::Release { owner, done } => {
                let released = self.release(owner).await;
                done.map(|done| done.send(()).unwrap_or_default())
                    .unwrap_or_default();
                released
            }
            KeeperRequest::Return { all } => {
                all.send(self.take_back().await)
                    .map(drop)
                    .unwrap_or_default();
                Ok(())
            }
            KeeperRequest::Spawn {
                owner,
                words,
                descriptors,
                spawned,
            } => {
                let result = self.spawn(owner, words, &descriptors).await;
                spawned.send(result).map(drop).unwrap_or_default();
                Ok(())
            }
            KeeperRequest::ExitCode { owner, code } => {
                let answer = self.exit_code(owner).await;
                code.send(answer.as_ref().copied().unwrap_or_default())
                    .unwrap_or_default();
                answer.map(drop)
            }
        };

        if let Err(error) = done {
            tracing::warn!(error = %error, "keeper request failed; container output may be lost if runtime and supervisor are killed together");
            self.kill_and_replace().await;
        }
    }

    async fn hold(&mut self, (belongings, descriptors): Holding) -> io::Result<()> {
        let owner = belongings.owner.clone();
        self.send(&ToKeeper::Hold { belongings }, &descriptors)
            .await?
            .held
            .insert(owner);
        Ok(())
    }

    async fn spawn(
        &mut self,
        owner: String,
        words: Vec<String>,
        descriptors: &[OwnedFd],
    ) -> io::Result<Spawned> {
        let message = ToKeeper::Spawn {
            owner: owner.clone(),
            words,
        };

        let answer = match self.send(&message, descriptors).await {
            Ok(link) => link.receive().await,
            Err(error) => Err(error),
        };

        if answer.is_err() {
            // Its late result would be unexpected.
            self.kill_and_replace().await;
        }

        match answer? {
            (FromKeeper::Spawned { pid }, mut pidfd) => {
                if let Some(link) = &mut self.link {
                    link.held.insert(owner);
                }
                Ok((pid, pidfd.pop().ok_or(io::ErrorKind::InvalidData)?))
            }
            (FromKeeper::Failed { errno }, _) => Err(io::Error::from_raw_os_error(errno)),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Sends to the keeper; starts a new one if there is none.
    async fn send(&mut self, message: &ToKeeper, descriptors: &[OwnedFd]) -> io::Result<&mut Link> {
        let reached = match &self.link {
            None => false,
            Some(link) => match link.send(message, descriptors).await {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                    self.replace().await;
                    false
                }
                sent => sent.map(|()| true)?,
            },
        };

        if !reached {
            let link = start(&self.node, &self.folder).await?;
            link.send(message, descriptors).await?;
            self.link = Some(link);
        }

        self.link
            .as_mut()
            .ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    async fn release(&mut self, owner: String) -> io::Result<()> {
        let Some(link) = &mut self.link else {
            return Ok(());
        };
        if !link.held.remove(&owner) {
            return Ok(());
        }

        link.send(&ToKeeper::Release { owner }, &[]).await?;

        if let (FromKeeper::Released { left: 0 }, _) = link.receive().await? {
            // It exits; clean up before the caller continues.
            tokio::time::timeout(TIMEOUT, gone(self.link.as_ref())).await?;
            self.reap().await;
            let folder = self.folder.clone();
            blocking(move || remove_tree(&folder)).await?;
        }

        Ok(())
    }

    async fn exit_code(&self, owner: String) -> io::Result<Option<i32>> {
        let Some(link) = &self.link else {
            return Ok(None);
        };
        link.send(&ToKeeper::How { owner }, &[]).await?;
        match link.receive().await? {
            (FromKeeper::Ended { code }, _) => Ok(code),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Takes what a keeper of an earlier runtime holds.
    async fn take_back(&mut self) -> Vec<Holding> {
        let Ok(socket) = dial(&self.folder) else {
            return Vec::new();
        };

        let answer = tokio::time::timeout(HANDOVER_TIMEOUT, handshake(socket)).await;
        match answer.map_err(io::Error::from).flatten() {
            Ok((link, all)) => {
                self.link = Some(link);
                all
            }
            Err(error) => {
                tracing::warn!(error = %error, "keeper did not return its descriptors");
                Vec::new()
            }
        }
    }

    /// Kills a keeper that does not respond, so that there are never two, and replaces it.
    async fn kill_and_replace(&mut self) {
        let Some(link) = &self.link else { return };

        // It may have exited already.
        pidfd_send_signal(link.process.get_ref(), Signal::KILL).unwrap_or_default();

        if tokio::time::timeout(TIMEOUT, gone(self.link.as_ref()))
            .await
            .is_ok()
        {
            self.replace().await;
        } else {
            // It is blocked on a disk, and exits when that responds.
            self.link = None;
        }
    }

    /// Gives all held descriptors to a new keeper.
    async fn replace(&mut self) {
        self.reap().await;
        if let Some(node) = self.node.upgrade() {
            node.hold_all();
        }
    }

    /// Reaps a keeper that has exited, if it is our child.
    async fn reap(&mut self) {
        if let Some(mut child) = self.link.take().and_then(|link| link.child) {
            blocking(move || child.wait())
                .await
                .map(drop)
                .unwrap_or_default();
        }
    }
}

impl Link {
    fn new(socket: OwnedFd, pid: i32, child: Option<Child>) -> io::Result<Self> {
        let pid = Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidData)?;
        let process = sys::watch(pidfd_open(pid, PidfdFlags::empty())?)?;
        Ok(Self {
            socket: sys::watch(socket)?,
            process,
            child,
            held: BTreeSet::new(),
        })
    }

    async fn send(&self, message: &ToKeeper, descriptors: &[OwnedFd]) -> io::Result<()> {
        let message = encode(message);
        let descriptors: Vec<_> = descriptors
            .iter()
            .map(|descriptor| descriptor.as_fd())
            .collect();
        let send = |socket: &OwnedFd| socket::send(socket, &message, &descriptors);
        tokio::time::timeout(TIMEOUT, self.socket.async_io(Interest::WRITABLE, send)).await?
    }

    async fn receive(&self) -> io::Result<(FromKeeper, Vec<OwnedFd>)> {
        tokio::time::timeout(TIMEOUT, receive(&self.socket)).await?
    }
}

async fn receive(socket: &AsyncFd<OwnedFd>) -> io::Result<(FromKeeper, Vec<OwnedFd>)> {
    let receive = |socket: &OwnedFd| socket::receive(socket.as_fd());
    let (message, descriptors) = socket
        .async_io(Interest::READABLE, receive)
        .await?
        .ok_or(io::ErrorKind::BrokenPipe)?;
    Ok((decode(&message).map_err(io::Error::other)?, descriptors))
}

/// Connects to a keeper that an earlier runtime started.
async fn handshake(socket: OwnedFd) -> io::Result<(Link, Vec<Holding>)> {
    let socket = sys::watch(socket)?;
    let ask = |socket: &OwnedFd| socket::send(socket, &encode(&ToKeeper::Return {}), &[]);
    socket.async_io(Interest::WRITABLE, ask).await?;

    let mut all: Vec<Holding> = Vec::new();
    loop {
        match receive(&socket).await? {
            (FromKeeper::Returned { belongings }, descriptors) => {
                all.push((belongings, descriptors))
            }
            (FromKeeper::Done { pid }, _) => {
                let mut link = Link::new(socket.into_inner(), pid, None)?;
                link.held
                    .extend(all.iter().map(|(belongings, _)| belongings.owner.clone()));
                return Ok((link, all));
            }
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// Starts a keeper.
async fn start(node: &Weak<Node>, folder: &std::path::Path) -> io::Result<Link> {
    let node = node.upgrade().ok_or(io::ErrorKind::NotConnected)?;
    let folder = folder.to_owned();
    let started = blocking(move || {
        private::folder(&folder)?;
        node.start_keeper(&folder).map_err(io::Error::other)
    });
    let (socket, child) = started.await?;
    let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
    Link::new(socket, pid, Some(child))
}
