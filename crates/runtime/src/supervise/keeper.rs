//! The keeper of this node, seen from here: a process that holds what we hold of containers, so that it is still there
//! after we were killed together with a supervisor.
//!
//! One task speaks to it, in the order in which others ask. It is started when there is something to hold, ends when
//! there is nothing any more, and is replaced when it was killed. Nothing fails for want of it.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::process::Child;
use std::sync::Weak;
use std::time::Duration;

use coracle_supervisor::protocol::{Belongings, FromKeeper, ToKeeper, decode, encode};
use coracle_supervisor::socket;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::{mpsc, oneshot};

use super::program::dial;
use crate::node::{Node, blocking};
use crate::sys;

/// How long a keeper may take for anything.
const PATIENCE: Duration = Duration::from_secs(5);

/// Descriptors of a container, and whose they are.
pub(crate) type Holding = (Belongings, Vec<OwnedFd>);

/// Through which the keeper's task is asked.
pub(crate) struct Keeper {
    orders: mpsc::UnboundedSender<Order>,
}

enum Order {
    Hold(Holding),
    Release { container: String, done: Option<oneshot::Sender<()>> },
    Return { all: oneshot::Sender<Vec<Holding>> },
}

/// What the keeper's task has to do.
pub(crate) struct Orders(mpsc::UnboundedReceiver<Order>);

impl Keeper {
    pub(crate) fn new() -> (Self, Orders) {
        let (orders, receiver) = mpsc::unbounded_channel();
        (Self { orders }, Orders(receiver))
    }

    /// Has something held, instead of what was held of this container.
    pub(crate) fn hold(&self, holding: Holding) {
        self.order(Order::Hold(holding));
    }

    /// Nothing of a container needs to be held any more.
    pub(crate) fn release(&self, container: &str) {
        self.order(Order::Release { container: container.to_owned(), done: None });
    }

    /// The same, and waits until nothing is.
    pub(crate) async fn released(&self, container: &str) {
        let (done, is_done) = oneshot::channel();
        self.order(Order::Release { container: container.to_owned(), done: Some(done) });
        is_done.await.unwrap_or_default();
    }

    /// All that is held from before this process began.
    pub(crate) async fn returned(&self) -> Vec<Holding> {
        let (all, answer) = oneshot::channel();
        self.order(Order::Return { all });
        answer.await.unwrap_or_default()
    }

    fn order(&self, order: Order) {
        // Who only looks at a node has no keeper, and one whose runtime goes needs none.
        self.orders.send(order).unwrap_or_default();
    }
}

/// Does what is asked of the keeper, for as long as somebody may ask.
pub(crate) async fn serve(node: Weak<Node>, folder: PathBuf, mut orders: Orders) {
    let mut talk = Conversation { node, folder, link: None };
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
    /// The containers of which it holds something.
    held: BTreeSet<String>,
}

impl Conversation {
    async fn carry_out(&mut self, order: Order) {
        let done = match order {
            Order::Hold(holding) => self.hold(holding).await,
            Order::Release { container, done } => {
                let released = self.release(container).await;
                done.map(|done| done.send(()).unwrap_or_default()).unwrap_or_default();
                released
            }
            Order::Return { all } => {
                // Who asked may be gone.
                all.send(self.take_back().await).map(drop).unwrap_or_default();
                Ok(())
            }
        };
        if let Err(error) = done {
            tracing::warn!(error = %error, "what is printed while neither we nor a supervisor are there may be lost");
            self.link = None;
        }
    }

    async fn hold(&mut self, (belongings, descriptors): Holding) -> io::Result<()> {
        let container = belongings.container.clone();
        let message = ToKeeper::Hold { belongings };
        if let Some(link) = &mut self.link {
            match link.send(&message, &descriptors).await {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.replace().await,
                sent => {
                    sent?;
                    link.held.insert(container);
                    return Ok(());
                }
            }
        }
        let link = self.link.insert(start(&self.node, &self.folder).await?);
        link.send(&message, &descriptors).await?;
        link.held.insert(container);
        Ok(())
    }

    async fn release(&mut self, container: String) -> io::Result<()> {
        let Some(link) = &mut self.link else { return Ok(()) };
        if !link.held.remove(&container) {
            return Ok(());
        }
        link.send(&ToKeeper::Release { container }, &[]).await?;
        if let (FromKeeper::Released { left: 0 }, _) = link.receive().await? {
            // It ends, and nothing of it is left when whoever asked goes on.
            tokio::time::timeout(PATIENCE, gone(self.link.as_ref())).await?;
            self.collect().await;
            fs::remove_dir_all(&self.folder)?;
        }
        Ok(())
    }

    /// What a keeper holds that an earlier runtime has started.
    async fn take_back(&mut self) -> Vec<Holding> {
        let Ok(socket) = dial(&self.folder) else { return Vec::new() };
        match met(socket).await {
            Ok((link, all)) => {
                self.link = Some(link);
                all
            }
            Err(error) => {
                tracing::warn!(error = %error, "the keeper does not answer");
                Vec::new()
            }
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
            blocking(move || child.wait()).await.map(drop).unwrap_or_default();
        }
    }
}

impl Link {
    fn new(socket: OwnedFd, pid: i32, child: Option<Child>) -> io::Result<Self> {
        let pid = Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidData)?;
        let process = sys::watch(pidfd_open(pid, PidfdFlags::empty())?)?;
        Ok(Self { socket: sys::watch(socket)?, process, child, held: BTreeSet::new() })
    }

    async fn send(&self, message: &ToKeeper, descriptors: &[OwnedFd]) -> io::Result<()> {
        let message = encode(message);
        let descriptors: Vec<_> = descriptors.iter().map(|descriptor| descriptor.as_fd()).collect();
        let send = |socket: &OwnedFd| socket::send(socket, &message, &descriptors);
        tokio::time::timeout(PATIENCE, self.socket.async_io(Interest::WRITABLE, send)).await?
    }

    async fn receive(&self) -> io::Result<(FromKeeper, Vec<OwnedFd>)> {
        receive(&self.socket).await
    }
}

async fn receive(socket: &AsyncFd<OwnedFd>) -> io::Result<(FromKeeper, Vec<OwnedFd>)> {
    let receive = |socket: &OwnedFd| socket::receive(socket.as_fd());
    let received = tokio::time::timeout(PATIENCE, socket.async_io(Interest::READABLE, receive)).await??;
    let (message, descriptors) = received.ok_or(io::ErrorKind::BrokenPipe)?;
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
            (FromKeeper::Returned { belongings }, descriptors) => all.push((belongings, descriptors)),
            (FromKeeper::Done { pid }, _) => {
                let mut link = Link::new(socket.into_inner(), pid, None)?;
                link.held.extend(all.iter().map(|(belongings, _)| belongings.container.clone()));
                return Ok((link, all));
            }
            (FromKeeper::Released { .. }, _) => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// Starts a keeper.
async fn start(node: &Weak<Node>, folder: &std::path::Path) -> io::Result<Link> {
    let node = node.upgrade().ok_or(io::ErrorKind::NotConnected)?;
    let folder = folder.to_owned();
    let started = blocking(move || {
        fs::create_dir_all(&folder)?;
        node.start_keeper(&folder).map_err(io::Error::other)
    });
    let (socket, child) = started.await?;
    let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
    Link::new(socket, pid, Some(child))
}
