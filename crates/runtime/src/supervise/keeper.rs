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

/// How long a keeper may take for anything.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long one may take that an earlier runtime has started: nobody else has what it holds.
const FIRST_PATIENCE: Duration = Duration::from_secs(30);

/// Descriptors of a container or of a sandbox, and whose they are.
pub(crate) type Holding = (Belongings, Vec<OwnedFd>);

/// A process that was started, and its pidfd.
pub(crate) type Spawned = (i32, OwnedFd);

/// Through which the keeper's task is asked.
pub(crate) struct Keeper {
    orders: mpsc::UnboundedSender<Order>,
}

enum Order {
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
    How {
        owner: String,
        code: oneshot::Sender<Option<i32>>,
    },
}

/// What the keeper's task has to do.
pub(crate) struct Orders(mpsc::UnboundedReceiver<Order>);

impl Keeper {
    pub(crate) fn new() -> (Self, Orders) {
        let (orders, receiver) = mpsc::unbounded_channel();
        (Self { orders }, Orders(receiver))
    }

    /// Has something held, instead of what was held of this owner.
    pub(crate) fn hold(&self, holding: Holding) {
        self.order(Order::Hold(holding));
    }

    /// Nothing of an owner needs to be held any more.
    pub(crate) fn release(&self, owner: &str) {
        self.order(Order::Release {
            owner: owner.to_owned(),
            done: None,
        });
    }

    /// The same, and waits until nothing is.
    pub(crate) async fn released(&self, owner: &str) {
        let (done, is_done) = oneshot::channel();
        self.order(Order::Release {
            owner: owner.to_owned(),
            done: Some(done),
        });
        is_done.await.unwrap_or_default();
    }

    /// All that is held from before this process began.
    pub(crate) async fn returned(&self) -> Vec<Holding> {
        let (all, answer) = oneshot::channel();
        self.order(Order::Return { all });
        answer.await.unwrap_or_default()
    }

    /// Starts a program for an owner: its descriptors are the program, its standard input and where
    /// errors go. Blocks.
    pub(crate) fn spawn(
        &self,
        owner: &str,
        words: Vec<String>,
        descriptors: Vec<OwnedFd>,
    ) -> io::Result<Spawned> {
        let (spawned, answer) = oneshot::channel();
        self.order(Order::Spawn {
            owner: owner.to_owned(),
            words,
            descriptors,
            spawned,
        });
        answer
            .blocking_recv()
            .unwrap_or_else(|_| Err(io::ErrorKind::NotConnected.into()))
    }

    /// How the first process of an owner ended, if its parent was killed before.
    pub(crate) async fn how_ended(&self, owner: &str) -> Option<i32> {
        let (code, answer) = oneshot::channel();
        self.order(Order::How {
            owner: owner.to_owned(),
            code,
        });
        answer.await.unwrap_or_default()
    }

    fn order(&self, order: Order) {
        // Who only looks at a node has no keeper, and one whose runtime goes needs none.
        self.orders.send(order).unwrap_or_default();
    }
}

/// Does what is asked of the keeper, for as long as somebody may ask.
pub(crate) async fn serve(node: Weak<Node>, folder: PathBuf, mut orders: Orders) {
    let mut talk = Conversation {
        node,
        folder,
        link: None,
    };

    loop {
        tokio::select! {
            order = orders.0.recv() => match order {
                Some(order) => talk.carry_out(order).await,
                None => return,
            },
            () = gone(talk.link.as_ref()) => talk.replace().await,
        }
    }
}

/// Waits until a keeper has ended.
async fn gone(link: Option<&Link>) {
    match link {
        Some(link) => link.process.readable().await.map(drop).unwrap_or_default(),
        None => std::future::pending().await,
    }
}

struct Conversation {
    node: Weak<Node>,
    folder: PathBuf,
    link: Option<Link>,
}

/// A keeper that is reached.
struct Link {
    socket: AsyncFd<OwnedFd>,
    /// Its pidfd.
    process: AsyncFd<OwnedFd>,
    /// If it is our child: somebody has to collect it.
    child: Option<Child>,
    /// Of whom it holds something.
    held: BTreeSet<String>,
}

impl Conversation {
    async fn carry_out(&mut self, order: Order) {
        // Who asked may be gone.
        let done = match order {
            Order::Hold(holding) => self.hold(holding).await,
            Order::Release { owner, done } => {
                let released = self.release(owner).await;
                done.map(|done| done.send(()).unwrap_or_default())
                    .unwrap_or_default();
                released
            }
            Order::Return { all } => {
                all.send(self.take_back().await)
                    .map(drop)
                    .unwrap_or_default();
                Ok(())
            }
            Order::Spawn {
                owner,
                words,
                descriptors,
                spawned,
            } => {
                let result = self.spawn(owner, words, &descriptors).await;
                spawned.send(result).map(drop).unwrap_or_default();
                Ok(())
            }
            Order::How { owner, code } => {
                let answer = self.how_ended(owner).await;
                code.send(answer.as_ref().copied().unwrap_or_default())
                    .unwrap_or_default();
                answer.map(drop)
            }
        };

        if let Err(error) = done {
            tracing::warn!(error = %error, "keeper request failed; container output may be lost if runtime and supervisor are killed together");
            self.give_up().await;
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
            // What it would do later nobody has asked for.
            self.give_up().await;
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

    /// Sends to the keeper, to a new one if there is none any more.
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
            // It ends, and nothing of it is left when whoever asked goes on.
            tokio::time::timeout(PATIENCE, gone(self.link.as_ref())).await?;
            self.collect().await;
            let folder = self.folder.clone();
            blocking(move || remove_tree(&folder)).await?;
        }

        Ok(())
    }

    async fn how_ended(&self, owner: String) -> io::Result<Option<i32>> {
        let Some(link) = &self.link else {
            return Ok(None);
        };
        link.send(&ToKeeper::How { owner }, &[]).await?;
        match link.receive().await? {
            (FromKeeper::Ended { code }, _) => Ok(code),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// What a keeper holds that an earlier runtime has started.
    async fn take_back(&mut self) -> Vec<Holding> {
        let Ok(socket) = dial(&self.folder) else {
            return Vec::new();
        };

        let answer = tokio::time::timeout(FIRST_PATIENCE, met(socket)).await;
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

    /// One that does not answer is ended, lest it live on beside the next, and is replaced.
    async fn give_up(&mut self) {
        let Some(link) = &self.link else { return };

        // It may have ended already.
        pidfd_send_signal(link.process.get_ref(), Signal::KILL).unwrap_or_default();

        if tokio::time::timeout(PATIENCE, gone(self.link.as_ref()))
            .await
            .is_ok()
        {
            self.replace().await;
        } else {
            // It waits for a disk, and dies when that answers.
            self.link = None;
        }
    }

    /// It was killed: another one is given all that we hold.
    async fn replace(&mut self) {
        self.collect().await;
        if let Some(node) = self.node.upgrade() {
            node.hold_all();
        }
    }

    /// A keeper that has ended has to be collected by its parent.
    async fn collect(&mut self) {
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
        tokio::time::timeout(PATIENCE, self.socket.async_io(Interest::WRITABLE, send)).await?
    }

    async fn receive(&self) -> io::Result<(FromKeeper, Vec<OwnedFd>)> {
        tokio::time::timeout(PATIENCE, receive(&self.socket)).await?
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

/// Gets to know a keeper that somebody else has started.
async fn met(socket: OwnedFd) -> io::Result<(Link, Vec<Holding>)> {
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
