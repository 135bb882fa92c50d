//! The reader of a connection: dispatches frames to streams and sends the required replies.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt as _, ReadHalf};
use tokio::sync::mpsc;

use super::connection::{Error, Incoming, Out, Shared};
use super::frame::{Decoder, Frame, StreamId};
use super::headers::{Headers, Unpacker};

/// The maximum number of open streams.
const MAX_STREAMS: usize = 512;

/// The read buffer size.
const PIECE: usize = 16 << 10;

const PROTOCOL_ERROR: u32 = 1;
const REFUSED_STREAM: u32 = 3;

/// Reads to the end of the connection, or to GOAWAY. All streams end with it.
pub(super) async fn read<R: AsyncRead>(
    mut io: ReadHalf<R>,
    shared: Arc<Shared>,
    outbox: mpsc::WeakSender<Out>,
    arrivals: mpsc::Sender<Incoming>,
) -> Result<(), Error> {
    let reading = Reading {
        shared: Arc::clone(&shared),
        outbox,
        arrivals,
    };

    let _ended = EndStreams(shared);
    let (mut decoder, mut unpacker) = (Decoder::default(), Unpacker::new());
    loop {
        let buffer = decoder.buffer();
        buffer.reserve(PIECE);

        if io.read_buf(buffer).await? == 0 {
            return Ok(());
        }

        while let Some(frame) = decoder.next()? {
            match frame {
                // Every block must be decompressed, needed or not: the next one depends on it.
                Frame::SynStream { stream, fin, block } => {
                    reading.opened(stream, fin, unpacker.unpack(&block)?).await;
                }
                Frame::SynReply { stream, fin, block } => {
                    unpacker.unpack(&block)?;
                    reading.replied(stream, fin);
                }
                Frame::Headers { stream, fin, block } => {
                    unpacker.unpack(&block)?;
                    if fin {
                        reading.shared.finished_by_peer(stream);
                    }
                }
                Frame::Data { stream, fin, bytes } => reading.data(stream, fin, bytes).await,
                Frame::RstStream { stream, .. } => reading.shared.cut(stream),
                Frame::Ping { id } => reading.pinged(id).await,
                Frame::GoAway { .. } => return Ok(()),
                Frame::Other => {}
            }
        }
    }
}

struct Reading {
    shared: Arc<Shared>,
    /// Weak: the reader does not keep an unused connection open.
    outbox: mpsc::WeakSender<Out>,
    arrivals: mpsc::Sender<Incoming>,
}

impl Reading {
    async fn opened(&self, id: StreamId, fin: bool, headers: Headers) {
        let Some(outbox) = self.outbox.upgrade() else {
            return;
        };
        let opened = {
            let mut state = self.shared.state();
            if !state.is_next_of_peer(id) {
                Err(PROTOCOL_ERROR)
            } else if state.streams.len() >= MAX_STREAMS {
                state.last_of_peer = id;
                Err(REFUSED_STREAM)
            } else {
                state.last_of_peer = id;
                Ok(state.insert(id, None, &outbox, &self.shared))
            }
        };

        let refusal = match opened {
            Err(status) => status,
            Ok(stream) => match self.arrivals.send(Incoming::new(id, headers, stream)).await {
                Ok(()) => {
                    if fin {
                        self.shared.finished_by_peer(id);
                    }
                    return;
                }
                // No one accepts streams any more.
                Err(_) => {
                    self.shared.cut(id);
                    REFUSED_STREAM
                }
            },
        };

        // An error means that the connection is being closed.
        drop(
            outbox
                .send(Out::Frame(Frame::RstStream {
                    stream: id,
                    status: refusal,
                }))
                .await,
        );
    }

    fn replied(&self, id: StreamId, fin: bool) {
        let replied = self
            .shared
            .state()
            .streams
            .get_mut(&id)
            .and_then(|entry| entry.replied.take());

        if let Some(replied) = replied {
            // The opener may have stopped waiting.
            replied.send(()).unwrap_or_default();
        }

        if fin {
            self.shared.finished_by_peer(id);
        }
    }

    async fn data(&self, id: StreamId, fin: bool, bytes: bytes::Bytes) {
        // The stream may have ended while the data was in transit.
        let inlet = self
            .shared
            .state()
            .streams
            .get(&id)
            .and_then(|entry| entry.inlet.clone());

        if let Some(inlet) = inlet {
            inlet.put(bytes).await;
        }
        if fin {
            self.shared.finished_by_peer(id);
        }
    }

    /// Replies to pings of the peer and ignores replies to ours.
    async fn pinged(&self, id: u32) {
        let of_peer = self.shared.state().is_of_peer(id);
        if of_peer && let Some(outbox) = self.outbox.upgrade() {
            drop(outbox.send(Out::Frame(Frame::Ping { id })).await);
        }
    }
}

/// Ends all streams when reading ends.
struct EndStreams(Arc<Shared>);

impl Drop for EndStreams {
    fn drop(&mut self) {
        self.0.state().streams.clear();
    }
}
