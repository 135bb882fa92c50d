//! Properties of what a SPDY peer sends.

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;

use super::frame::{Decoder, Frame, FrameError, encode};
use super::headers::{Packer, Unpacker};
use super::{Incoming, Side, open};

/// A decoder holds at most one control frame.
const MAX_HELD: usize = (64 << 10) + 8;

/// How the bytes are split changes nothing, and what was decoded is the same when it is encoded again.
pub(crate) fn frames(data: &[u8], split: usize) {
    let (whole, error) = decode(data.chunks(data.len().max(1)));
    let (pieces, error_of_pieces) = decode(data.chunks(split));
    assert_eq!((&whole, error), (&pieces, error_of_pieces));

    let mut encoded = BytesMut::new();
    for frame in &whole {
        encode(frame, &mut encoded);
    }
    // The end of a data frame may be missing; its header then promises less than the first one did.
    let known: Vec<Frame> = whole
        .into_iter()
        .filter(|frame| *frame != Frame::Other)
        .collect();
    let (again, error) = decode(std::iter::once(&encoded[..]));
    assert_eq!((joined(known), None), (joined(again), error));
}

fn decode<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<Frame>, Option<FrameError>) {
    let (mut decoder, mut frames) = (Decoder::default(), Vec::new());
    for piece in pieces {
        decoder.buffer().extend_from_slice(piece);
        loop {
            match decoder.next() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => return (joined(frames), Some(error)),
            }
        }
        assert!(decoder.buffer().len() <= MAX_HELD);
    }

    (joined(frames), None)
}

/// Joins the pieces of data frames.
fn joined(frames: Vec<Frame>) -> Vec<Frame> {
    let mut all: Vec<Frame> = Vec::new();
    for frame in frames {
        match (all.last_mut(), frame) {
            (
                Some(Frame::Data {
                    stream: before,
                    fin: ended,
                    bytes,
                }),
                Frame::Data {
                    stream,
                    fin,
                    bytes: more,
                },
            ) if *before == stream && !*ended => {
                *bytes = [&bytes[..], &more[..]].concat().into();
                *ended = fin;
            }
            (_, frame) => all.push(frame),
        }
    }

    all
}

/// Decompressed headers survive our own compression. Blocks of one direction follow each other.
pub(crate) fn header_blocks(data: &[u8]) {
    let (frames, _) = decode(std::iter::once(data));
    let (mut of_peer, mut packer, mut unpacker) = (Unpacker::new(), Packer::new(), Unpacker::new());

    let blocks = frames.iter().filter_map(|frame| match frame {
        Frame::SynStream { block, .. }
        | Frame::SynReply { block, .. }
        | Frame::Headers { block, .. } => Some(block),
        _ => None,
    });
    for block in blocks {
        let Ok(headers) = of_peer.unpack(block) else {
            return;
        };
        let packed = packer.pack(&headers);
        assert_eq!(unpacker.unpack(&packed).as_ref(), Ok(&headers));
    }

    // The same bytes as a block without a frame.
    drop(Unpacker::new().unpack(data));
}

/// A server that echoes every stream ends when the peer has sent all its bytes.
pub(crate) async fn connection(data: Bytes) {
    let io = tokio::io::join(std::io::Cursor::new(data), tokio::io::sink());
    let (mut connection, driver) = open(io, Side::Server);

    let work = async move {
        let mut streams = FuturesUnordered::new();
        loop {
            tokio::select! {
                incoming = connection.incoming() => match incoming {
                    Some(incoming) => streams.push(echo(incoming)),
                    None => break,
                },
                Some(()) = streams.next() => {}
            }
        }
        while streams.next().await.is_some() {}
    };

    let (result, ()) = tokio::join!(driver, work);
    drop(result);
}

/// An error means that the peer has ended the stream or the connection.
async fn echo(incoming: Incoming) {
    if incoming.headers.get("streamtype").len() > 5 {
        incoming.refuse().await.unwrap_or_default();
        return;
    }
    let Ok(mut stream) = incoming.accept().await else {
        return;
    };
    while let Some(bytes) = stream.receiver.next().await {
        if stream.sender.send(bytes).await.is_err() {
            return;
        }
    }
    stream.sender.finish().await.unwrap_or_default();
}
