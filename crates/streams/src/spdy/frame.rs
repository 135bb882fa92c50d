//! Encodes and decodes the frames of SPDY/3.1. No I/O.
//!
//! Control frames are short and are decoded as a whole; data is passed on in pieces as it is
//! received, so that a frame of 16 MiB is never buffered. Header blocks stay compressed here: see
//! [`super::headers`].

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// The longest control frame accepted. A header block has a few hundred bytes.
const LONGEST_CONTROL: usize = 64 << 10;

const VERSION: u16 = 3;
const HEAD: usize = 8;

const SYN_STREAM: u16 = 1;
const SYN_REPLY: u16 = 2;
const RST_STREAM: u16 = 3;
const PING: u16 = 6;
const GO_AWAY: u16 = 7;
const HEADERS: u16 = 8;

const FLAG_FIN: u8 = 1;

/// The id of a stream. Those opened by the client are odd.
pub(super) type StreamId = u32;

const STREAM_MASK: u32 = 0x7fff_ffff;

/// A frame, or a piece of a data frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// `fin`: the stream's last piece.
    Data {
        stream: StreamId,
        fin: bool,
        bytes: Bytes,
    },
    SynStream {
        stream: StreamId,
        fin: bool,
        block: Bytes,
    },
    SynReply {
        stream: StreamId,
        fin: bool,
        block: Bytes,
    },
    Headers {
        stream: StreamId,
        fin: bool,
        block: Bytes,
    },
    RstStream {
        stream: StreamId,
        status: u32,
    },
    Ping {
        id: u32,
    },
    GoAway {
        last: StreamId,
        status: u32,
    },
    /// Settings, windows and unknown frames, which are ignored.
    Other,
}

/// Why bytes are not valid SPDY/3.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    #[error("a control frame of version {0}")]
    Version(u16),
    #[error("a control frame of {0} bytes")]
    TooLong(usize),
    #[error("a control frame that is too short for its type")]
    TooShort,
}

/// Decodes frames from a stream of bytes.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    held: BytesMut,
    /// The data frame being read: its stream, how many bytes are missing, and whether it is the
    /// last.
    data: Option<(StreamId, usize, bool)>,
}

impl Decoder {
    /// The buffer for received bytes.
    pub(super) fn buffer(&mut self) -> &mut BytesMut {
        &mut self.held
    }

    /// The next frame, if it is complete.
    pub(super) fn next(&mut self) -> Result<Option<Frame>, FrameError> {
        loop {
            if let Some((stream, left, last)) = self.data {
                if left > 0 && self.held.is_empty() {
                    return Ok(None);
                }

                let bytes = self.held.split_to(left.min(self.held.len())).freeze();
                let left = left - bytes.len();
                self.data = (left > 0).then_some((stream, left, last));

                return Ok(Some(Frame::Data {
                    stream,
                    fin: last && left == 0,
                    bytes,
                }));
            }

            let Some(head) = self.held.get(..HEAD) else {
                return Ok(None);
            };
            let length =
                usize::from(head[5]) << 16 | usize::from(head[6]) << 8 | usize::from(head[7]);
            let is_last = head[4] & FLAG_FIN != 0;

            let first = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
            if first & !STREAM_MASK == 0 {
                self.held.advance(HEAD);
                self.data = Some((first, length, is_last));
                continue;
            }

            let (version, kind) = (
                u16::from_be_bytes([head[0] & 0x7f, head[1]]),
                (first & 0xffff) as u16,
            );

            if version != VERSION {
                return Err(FrameError::Version(version));
            }

            if length > LONGEST_CONTROL {
                return Err(FrameError::TooLong(length));
            }

            if self.held.len() < HEAD + length {
                return Ok(None);
            }

            self.held.advance(HEAD);
            return control(kind, is_last, self.held.split_to(length).freeze()).map(Some);
        }
    }
}

fn control(kind: u16, fin: bool, mut payload: Bytes) -> Result<Frame, FrameError> {
    let number = |payload: &mut Bytes| payload.try_get_u32().map_err(|_| FrameError::TooShort);
    Ok(match kind {
        SYN_STREAM => {
            let stream = number(&mut payload)? & STREAM_MASK;
            number(&mut payload)?; // The associated stream, unused.
            payload.try_get_u16().map_err(|_| FrameError::TooShort)?; // The priority, unused.
            Frame::SynStream {
                stream,
                fin,
                block: payload,
            }
        }
        SYN_REPLY => Frame::SynReply {
            stream: number(&mut payload)? & STREAM_MASK,
            fin,
            block: payload,
        },
        HEADERS => Frame::Headers {
            stream: number(&mut payload)? & STREAM_MASK,
            fin,
            block: payload,
        },
        RST_STREAM => {
            let stream = number(&mut payload)? & STREAM_MASK;
            Frame::RstStream {
                stream,
                status: number(&mut payload)?,
            }
        }
        PING => Frame::Ping {
            id: number(&mut payload)?,
        },
        GO_AWAY => {
            let last = number(&mut payload)? & STREAM_MASK;
            Frame::GoAway {
                last,
                status: number(&mut payload)?,
            }
        }
        _ => Frame::Other,
    })
}

/// Encodes a frame. Data must be shorter than 16 MiB, a header block than 64 KiB.
pub(super) fn encode(frame: &Frame, out: &mut BytesMut) {
    match frame {
        Frame::Data { stream, fin, bytes } => {
            out.put_u32(stream & STREAM_MASK);
            out.put_u32(flags_and_length(*fin, bytes.len()));
            out.put_slice(bytes);
        }
        Frame::SynStream { stream, fin, block } => {
            put_control(out, SYN_STREAM, *fin, 10 + block.len());
            out.put_u32(*stream);
            out.put_u32(0);
            out.put_u16(0);
            out.put_slice(block);
        }
        Frame::SynReply { stream, fin, block } => {
            put_with_block(out, SYN_REPLY, *stream, *fin, block)
        }
        Frame::Headers { stream, fin, block } => put_with_block(out, HEADERS, *stream, *fin, block),
        Frame::RstStream { stream, status } => put_two(out, RST_STREAM, *stream, *status),
        Frame::GoAway { last, status } => put_two(out, GO_AWAY, *last, *status),
        Frame::Ping { id } => {
            put_control(out, PING, false, 4);
            out.put_u32(*id);
        }
        Frame::Other => {}
    }
}

fn put_with_block(out: &mut BytesMut, kind: u16, stream: StreamId, fin: bool, block: &[u8]) {
    put_control(out, kind, fin, 4 + block.len());
    out.put_u32(stream);
    out.put_slice(block);
}

fn put_two(out: &mut BytesMut, kind: u16, first: u32, second: u32) {
    put_control(out, kind, false, 8);
    out.put_u32(first);
    out.put_u32(second);
}

fn put_control(out: &mut BytesMut, kind: u16, fin: bool, length: usize) {
    out.put_u16(0x8000 | VERSION);
    out.put_u16(kind);
    out.put_u32(flags_and_length(fin, length));
}

fn flags_and_length(fin: bool, length: usize) -> u32 {
    let length = u32::try_from(length)
        .ok()
        .filter(|length| *length < 1 << 24);
    let length = length.expect("frames are kept below 16 MiB");
    if fin {
        u32::from(FLAG_FIN) << 24 | length
    } else {
        length
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// All frames of some bytes received in pieces; pieces of data are joined.
    fn decoded(pieces: &[&[u8]]) -> Result<Vec<Frame>, FrameError> {
        let (mut decoder, mut frames) = (Decoder::default(), Vec::<Frame>::new());
        for piece in pieces {
            decoder.buffer().extend_from_slice(piece);

            while let Some(frame) = decoder.next()? {
                match (frames.last_mut(), frame) {
                    (
                        Some(Frame::Data {
                            stream: before,
                            fin,
                            bytes,
                        }),
                        Frame::Data {
                            stream,
                            fin: now,
                            bytes: more,
                        },
                    ) if *before == stream && !*fin => {
                        *bytes = [&bytes[..], &more[..]].concat().into();
                        *fin = now;
                    }
                    (_, frame) => frames.push(frame),
                }
            }
        }

        Ok(frames)
    }

    fn some_frames() -> Vec<Frame> {
        let block = Bytes::from_static(b"block");
        vec![
            Frame::SynStream {
                stream: 1,
                fin: false,
                block: block.clone(),
            },
            Frame::SynReply {
                stream: 1,
                fin: false,
                block: block.clone(),
            },
            Frame::Data {
                stream: 1,
                fin: false,
                bytes: Bytes::from_static(b"hello"),
            },
            Frame::Ping { id: 7 },
            Frame::Headers {
                stream: 3,
                fin: true,
                block,
            },
            Frame::Data {
                stream: 3,
                fin: true,
                bytes: Bytes::new(),
            },
            Frame::RstStream {
                stream: 3,
                status: 5,
            },
            Frame::GoAway { last: 3, status: 0 },
        ]
    }

    #[test]
    fn frames_are_decoded_wherever_the_bytes_are_split() {
        let mut bytes = BytesMut::new();
        some_frames()
            .iter()
            .for_each(|frame| encode(frame, &mut bytes));

        for at in 0..=bytes.len() {
            let (first, second) = bytes.split_at(at);
            assert_eq!(
                decoded(&[first, second]).unwrap(),
                some_frames(),
                "cut at {at}"
            );
        }

        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(decoded(&single).unwrap(), some_frames());
    }

    #[test]
    fn invalid_frames_are_rejected() {
        let check = |bytes: &[u8], expected: FrameError| {
            assert_eq!(decoded(&[bytes]).unwrap_err(), expected, "{bytes:?}");
        };
        check(&[0x80, 2, 0, 1, 0, 0, 0, 0], FrameError::Version(2));
        check(
            &[0x80, 3, 0, 1, 0, 0xff, 0, 0],
            FrameError::TooLong(0xff_0000),
        );

        check(&[0x80, 3, 0, 1, 0, 0, 0, 2, 0, 0], FrameError::TooShort);
        check(
            &[0x80, 3, 0, 3, 0, 0, 0, 4, 0, 0, 0, 1],
            FrameError::TooShort,
        );

        check(&[0x80, 3, 0, 6, 0, 0, 0, 0], FrameError::TooShort);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic_or_hold_much(bytes in proptest::collection::vec(any::<u8>(), 0..4096), size in 1usize..64) {
            let mut decoder = Decoder::default();
            for piece in bytes.chunks(size) {
                decoder.buffer().extend_from_slice(piece);
                loop {
                    match decoder.next() {
                        Ok(Some(_)) => {}
                        Ok(None) => break,
                        Err(_) => return Ok(()),
                    }
                }
                prop_assert!(decoder.held.len() <= LONGEST_CONTROL + HEAD);
            }
        }
    }
}
