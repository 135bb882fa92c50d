//! What streams of both protocols have in common: a bounded receiver, a sender, and the driver.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::{spdy, websocket};

/// How many unread bytes of a stream are buffered before the peer has to wait.
const WINDOW: u32 = 256 << 10;

/// The minimum weight of a chunk, because small ones have overhead.
const MIN_WEIGHT: u32 = 64;

/// The stream or the connection has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stream was closed by the peer")]
pub struct Gone;

/// The receiving side of a stream.
pub struct Receiver {
    chunks: mpsc::UnboundedReceiver<(Bytes, OwnedSemaphorePermit)>,
    room: Arc<Semaphore>,
}

/// The driver's side of a receiver.
#[derive(Clone)]
pub(crate) struct Inlet {
    chunks: mpsc::UnboundedSender<(Bytes, OwnedSemaphorePermit)>,
    room: Arc<Semaphore>,
}

pub(crate) fn inlet() -> (Inlet, Receiver) {
    let (sender, chunks) = mpsc::unbounded_channel();
    let room = Arc::new(Semaphore::new(WINDOW as usize));
    (
        Inlet {
            chunks: sender,
            room: Arc::clone(&room),
        },
        Receiver { chunks, room },
    )
}

impl Receiver {
    /// The next bytes; `None` at the end.
    ///
    /// # Cancellation
    /// Cancel-safe.
    pub async fn next(&mut self) -> Option<Bytes> {
        self.chunks.recv().await.map(|(bytes, _room)| bytes)
    }

    /// Reads to the end and returns at most `most` bytes; the rest is discarded.
    pub async fn collect(&mut self, most: usize) -> Vec<u8> {
        let mut all = Vec::new();
        while let Some(bytes) = self.next().await {
            let room = most - all.len();
            all.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
        all
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // Wakes a driver that waits for space.
        self.room.close();
    }
}

impl Inlet {
    /// Waits for space. If the receiver was dropped, the bytes are discarded.
    pub(crate) async fn put(&self, bytes: Bytes) {
        if bytes.is_empty() {
            return;
        }
        let weight = u32::try_from(bytes.len())
            .unwrap_or(WINDOW)
            .clamp(MIN_WEIGHT, WINDOW);
        if let Ok(room) = Arc::clone(&self.room).acquire_many_owned(weight).await {
            // An error means that the receiver was dropped meanwhile.
            self.chunks.send((bytes, room)).unwrap_or_default();
        }
    }
}

/// The sending side of a stream.
pub struct Sender(pub(crate) SenderKind);

pub(crate) enum SenderKind {
    Spdy(spdy::Outlet),
    Channel(websocket::Outlet),
}

impl Sender {
    /// Sends bytes, waiting while the connection's queue is full.
    ///
    /// # Cancellation
    /// The bytes are queued in frames; those already queued are sent. The connection stays valid.
    pub async fn send(&self, bytes: Bytes) -> Result<(), Gone> {
        match &self.0 {
            SenderKind::Spdy(outlet) => outlet.send(bytes).await,
            SenderKind::Channel(outlet) => outlet.send(bytes).await,
        }
    }

    /// Half-closes the stream, if the protocol supports it.
    pub async fn finish(&self) -> Result<(), Gone> {
        match &self.0 {
            SenderKind::Spdy(outlet) => outlet.finish().await,
            SenderKind::Channel(outlet) => outlet.finish().await,
        }
    }
}

/// Runs the work of a connection beside its driver, and then lets the driver send what is queued.
/// `None`: the connection ended first, and the work was dropped.
pub async fn drive<W: Future>(driver: impl Future, work: W) -> Option<W::Output> {
    let mut driver = pin!(driver);
    let done = tokio::select! {
        biased;
        done = work => done,
        _ = &mut driver => return None,
    };
    driver.await;
    Some(done)
}

/// The same for a client: data received before the connection ended is still read, so the work runs
/// to its end.
pub async fn drive_to_the_end<W: Future>(driver: impl Future, work: W) -> W::Output {
    let (mut driver, mut work) = (pin!(driver), pin!(work));
    tokio::select! {
        biased;
        done = &mut work => {
            driver.await;
            done
        }
        _ = &mut driver => work.await,
    }
}
