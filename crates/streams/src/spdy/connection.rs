//! A SPDY connection: frames are read by [`super::reading`] and written here, in order.

use std::collections::HashMap;
use std::io;
use std::pin::pin;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use coracle_base::sync::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, WriteHalf};
use tokio::sync::{mpsc, oneshot, watch};

use super::frame::{Frame, FrameError, StreamId, encode};
use super::headers::{HeaderError, Headers, Packer};
use super::reading;
use crate::pipe::{Gone, Inlet, Receiver, Sender, SenderKind, inlet};

/// The queue length of frames to be written.
const WAITING_FRAMES: usize = 16;

/// The maximum size of our data frames.
const LONGEST_DATA: usize = 32 << 10;

/// How long the peer may take to close a connection that we have finished.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

const PROTOCOL_ERROR: u32 = 1;
const CANCEL: u32 = 5;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("connection error: {0}")]
    Io(#[from] io::Error),
    #[error("protocol error: the peer sent {0}")]
    Frame(#[from] FrameError),
    #[error("protocol error: the peer sent {0}")]
    Headers(#[from] HeaderError),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Client,
    Server,
}

/// A connection. When it and all its streams are dropped, queued frames are written and the
/// connection is closed.
pub struct Connection {
    outbox: mpsc::Sender<Out>,
    shared: Arc<Shared>,
    incoming: mpsc::Receiver<Incoming>,
}

/// A stream that the peer has opened and that is not yet answered.
pub struct Incoming {
    pub id: u32,
    pub headers: Headers,
    stream: Stream,
}

/// One stream of a connection.
pub struct Stream {
    pub receiver: Receiver,
    pub sender: Sender,
    cut: watch::Receiver<bool>,
}

/// The state shared by the handles, the reader and the writer of a connection.
pub(super) struct Shared {
    pub(super) state: Mutex<State>,
}

pub(super) struct State {
    pub(super) streams: HashMap<StreamId, Entry>,
    /// The id of our next stream.
    next: StreamId,
    /// The id of the peer's last stream; zero: none yet.
    pub(super) last_of_peer: StreamId,
    side: Side,
}

/// An open stream.
pub(super) struct Entry {
    /// `None`: the peer has half-closed the stream.
    pub(super) inlet: Option<Inlet>,
    /// We have half-closed the stream.
    finished: bool,
    /// Waits for the peer's reply to a new stream.
    pub(super) replied: Option<oneshot::Sender<()>>,
    pub(super) cut: watch::Sender<bool>,
}

/// An item to be written.
pub(super) enum Out {
    Open(StreamId, Headers),
    Reply(StreamId),
    Frame(Frame),
}

/// Starts a SPDY session: a handle, and the driver that does the I/O.
pub fn open<IO>(io: IO, side: Side) -> (Connection, impl Future<Output = Result<(), Error>>)
where
    IO: AsyncRead + AsyncWrite + Send + 'static,
{
    let (outbox, waiting) = mpsc::channel(WAITING_FRAMES);
    let (arrivals, incoming) = mpsc::channel(1);
    let next = if side == Side::Client { 1 } else { 2 };
    let state = State {
        streams: HashMap::new(),
        next,
        last_of_peer: 0,
        side,
    };

    let shared = Arc::new(Shared {
        state: Mutex::new(state),
    });
    let (from, to) = tokio::io::split(io);

    let read = reading::read(from, Arc::clone(&shared), outbox.downgrade(), arrivals);
    let driver = async move {
        let mut read = pin!(read);
        let mut write = pin!(write(to, waiting));
        tokio::select! {
            result = &mut read => return result,
            result = &mut write => result?,
        }

        // Closing with unread data would reset the connection, and the peer might miss the last
        // frames.
        tokio::time::timeout(CLOSE_TIMEOUT, read)
            .await
            .unwrap_or(Ok(()))
    };

    (
        Connection {
            outbox,
            shared,
            incoming,
        },
        driver,
    )
}

async fn write<W: AsyncWrite>(
    mut io: WriteHalf<W>,
    mut waiting: mpsc::Receiver<Out>,
) -> Result<(), Error> {
    let (mut packer, mut bytes) = (Packer::new(), BytesMut::new());
    while let Some(out) = waiting.recv().await {
        write_one(out, &mut packer, &mut bytes);
        while let Ok(out) = waiting.try_recv() {
            write_one(out, &mut packer, &mut bytes);
        }
        io.write_all_buf(&mut bytes).await?;
        io.flush().await?;
    }
    Ok(io.shutdown().await?)
}

fn write_one(out: Out, packer: &mut Packer, bytes: &mut BytesMut) {
    let frame = match out {
        Out::Open(stream, headers) => Frame::SynStream {
            stream,
            fin: false,
            block: packer.pack(&headers),
        },
        Out::Reply(stream) => Frame::SynReply {
            stream,
            fin: false,
            block: packer.pack(&Headers::default()),
        },
        Out::Frame(frame) => frame,
    };
    encode(&frame, bytes);
}

impl Connection {
    /// The next stream that the peer opens; `None`: there will be no more.
    pub async fn incoming(&mut self) -> Option<Incoming> {
        self.incoming.recv().await
    }

    /// Opens a stream, and waits for the peer's reply.
    pub async fn open_stream(&self, headers: Headers) -> Result<Stream, Gone> {
        let place = self.outbox.reserve().await.map_err(|_| Gone)?;
        let (replied, reply) = oneshot::channel();
        let stream = {
            let mut state = self.shared.state();
            let id = state.next;
            state.next += 2;
            let stream = state.insert(id, Some(replied), &self.outbox, &self.shared);
            // Under the lock: ids must increase in the order in which streams are opened.
            place.send(Out::Open(id, headers));
            stream
        };

        reply.await.map_err(|_| Gone)?;

        Ok(stream)
    }

    /// Sends GOAWAY. Open streams may continue.
    pub async fn go_away(&self) -> Result<(), Gone> {
        let last = self.shared.state().last_of_peer;
        self.outbox
            .send(Out::Frame(Frame::GoAway { last, status: 0 }))
            .await
            .map_err(|_| Gone)
    }
}

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Ends the stream in both directions.
    pub(super) fn cut(&self, id: StreamId) {
        if let Some(entry) = self.state().streams.remove(&id) {
            entry.cut.send_replace(true);
        }
    }

    /// The peer has half-closed the stream.
    pub(super) fn finished_by_peer(&self, id: StreamId) {
        let mut state = self.state();
        let Some(entry) = state.streams.get_mut(&id) else {
            return;
        };
        entry.inlet = None;
        if entry.finished {
            state.streams.remove(&id);
        }
    }

    fn finished_by_us(&self, id: StreamId) {
        let mut state = self.state();
        let Some(entry) = state.streams.get_mut(&id) else {
            return;
        };
        entry.finished = true;
        if entry.inlet.is_none() {
            state.streams.remove(&id);
        }
    }
}

impl State {
    /// Whether the peer may open a stream with this id now.
    pub(super) fn is_next_of_peer(&self, id: StreamId) -> bool {
        self.is_of_peer(id) && id > self.last_of_peer
    }

    /// Whether this id belongs to the peer.
    pub(super) fn is_of_peer(&self, id: u32) -> bool {
        (id % 2 == 1) == (self.side == Side::Server)
    }

    pub(super) fn insert(
        &mut self,
        id: StreamId,
        replied: Option<oneshot::Sender<()>>,
        outbox: &mpsc::Sender<Out>,
        shared: &Arc<Shared>,
    ) -> Stream {
        let (inlet, receiver) = inlet();
        let (cutter, cut) = watch::channel(false);
        let entry = Entry {
            inlet: Some(inlet),
            finished: false,
            replied,
            cut: cutter,
        };
        self.streams.insert(id, entry);

        let outlet = Outlet {
            id,
            outbox: outbox.clone(),
            shared: Arc::clone(shared),
            cut: cut.clone(),
        };

        Stream {
            receiver,
            sender: Sender(SenderKind::Spdy(outlet)),
            cut,
        }
    }
}

impl Incoming {
    pub(super) fn new(id: StreamId, headers: Headers, stream: Stream) -> Incoming {
        Incoming {
            id,
            headers,
            stream,
        }
    }

    /// Accepts the stream.
    pub async fn accept(self) -> Result<Stream, Gone> {
        self.outlet().queue(Out::Reply(self.id)).await?;
        Ok(self.stream)
    }

    /// Rejects the stream.
    pub async fn refuse(self) -> Result<(), Gone> {
        self.outlet().reset(PROTOCOL_ERROR).await
    }

    fn outlet(&self) -> &Outlet {
        self.stream.outlet()
    }
}

impl Stream {
    /// A handle to wait for the end of the stream.
    pub fn cut(&self) -> Cut {
        Cut(self.cut.clone())
    }

    /// Resets the stream: ends it in both directions.
    pub async fn reset(&self) -> Result<(), Gone> {
        self.outlet().reset(CANCEL).await
    }

    fn outlet(&self) -> &Outlet {
        match &self.sender.0 {
            SenderKind::Spdy(outlet) => outlet,
            SenderKind::Channel(_) => unreachable!("a SPDY stream has a SPDY sender"),
        }
    }
}

/// Waits for the end of a stream.
pub struct Cut(watch::Receiver<bool>);

impl Cut {
    /// Resolves when the stream has ended.
    pub async fn happened(mut self) {
        // An error means that both sides have finished, or that the connection is closed.
        drop(self.0.wait_for(|cut| *cut).await);
    }
}

/// The sender of one stream.
pub(crate) struct Outlet {
    id: StreamId,
    outbox: mpsc::Sender<Out>,
    shared: Arc<Shared>,
    cut: watch::Receiver<bool>,
}

impl Outlet {
    pub(crate) async fn send(&self, mut bytes: Bytes) -> Result<(), Gone> {
        while !bytes.is_empty() {
            if *self.cut.borrow() {
                return Err(Gone);
            }

            let piece = bytes.split_to(bytes.len().min(LONGEST_DATA));
            self.queue(Out::Frame(Frame::Data {
                stream: self.id,
                fin: false,
                bytes: piece,
            }))
            .await?;
        }

        Ok(())
    }

    pub(crate) async fn finish(&self) -> Result<(), Gone> {
        self.queue(Out::Frame(Frame::Data {
            stream: self.id,
            fin: true,
            bytes: Bytes::new(),
        }))
        .await?;
        self.shared.finished_by_us(self.id);
        Ok(())
    }

    async fn reset(&self, status: u32) -> Result<(), Gone> {
        self.shared.cut(self.id);
        self.queue(Out::Frame(Frame::RstStream {
            stream: self.id,
            status,
        }))
        .await
    }

    async fn queue(&self, out: Out) -> Result<(), Gone> {
        self.outbox.send(out).await.map_err(|_| Gone)
    }
}
