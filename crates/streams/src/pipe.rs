//! What streams of either protocol have in common: a bounded way in, a way out, and the driver
//! beside the work.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::{spdy, websocket};

/// How many bytes of a stream wait to be read before the peer has to.
const ROOM: u32 = 256 << 10;

/// What a chunk counts at least: many small ones weigh more than their content.
const LEAST: u32 = 64;

/// The stream or the connection is no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the other side of the stream is gone")]
pub struct Gone;

/// What comes on a stream.
pub struct Receiver {
    chunks: mpsc::UnboundedReceiver<(Bytes, OwnedSemaphorePermit)>,
    room: Arc<Semaphore>,
}

/// Where the driver of a connection puts what has come.
#[derive(Clone)]
pub(crate) struct Inlet {
    chunks: mpsc::UnboundedSender<(Bytes, OwnedSemaphorePermit)>,
    room: Arc<Semaphore>,
}

pub(crate) fn inlet() -> (Inlet, Receiver) {
    let (sender, chunks) = mpsc::unbounded_channel();
    let room = Arc::new(Semaphore::new(ROOM as usize));
    (
        Inlet {
            chunks: sender,
            room: Arc::clone(&room),
        },
        Receiver { chunks, room },
    )
}

impl Receiver {
    /// The next bytes; `None`: there are no more.
    ///
    /// # Cancellation
    /// Nothing is lost.
    pub async fn next(&mut self) -> Option<Bytes> {
        self.chunks.recv().await.map(|(bytes, _room)| bytes)
    }

    /// Everything to the end, if it is not more than `most` bytes; what is beyond is thrown away.
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
        // Whoever waits to put something in need not wait any longer.
        self.room.close();
    }
}

impl Inlet {
    /// Waits until there is room. What nobody wants to read is thrown away.
    pub(crate) async fn put(&self, bytes: Bytes) {
        if bytes.is_empty() {
            return;
        }
        let weight = u32::try_from(bytes.len())
            .unwrap_or(ROOM)
            .clamp(LEAST, ROOM);
        if let Ok(room) = Arc::clone(&self.room).acquire_many_owned(weight).await {
            // An error says that the reader has gone meanwhile.
            self.chunks.send((bytes, room)).unwrap_or_default();
        }
    }
}

/// Where a stream's bytes go.
pub struct Sender(pub(crate) Way);

pub(crate) enum Way {
    Spdy(spdy::Outlet),
    Channel(websocket::Outlet),
}

impl Sender {
    /// Hands bytes to the connection, waiting while it is full.
    ///
    /// # Cancellation
    /// The bytes are handed over in frames; those that were stay so. The connection stays whole.
    pub async fn send(&self, bytes: Bytes) -> Result<(), Gone> {
        match &self.0 {
            Way::Spdy(outlet) => outlet.send(bytes).await,
            Way::Channel(outlet) => outlet.send(bytes).await,
        }
    }

    /// Says that nothing more will come on this stream, where the protocol can say so.
    pub async fn finish(&self) -> Result<(), Gone> {
        match &self.0 {
            Way::Spdy(outlet) => outlet.finish().await,
            Way::Channel(outlet) => outlet.finish().await,
        }
    }
}

/// Does the work of a connection beside the driver that carries its bytes, and lets the driver
/// finish what the work has said. `None`: the connection ended first, and the work where it stood.
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

/// The same for a client: what has come before the connection ended is still read, so the work goes
/// on to its end.
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
