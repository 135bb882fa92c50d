//! The frames of a WebSocket (RFC 6455), read and written piece by piece.
//!
//! A message can be as long as the peer likes, so it is never held whole: the reader returns pieces
//! of at most [`MAX_PIECE`] bytes, and reads no further until the caller asks for the next. The
//! crates of the field assemble whole messages or whole frames, which lets a peer decide how much
//! memory a connection takes.

use std::io::{self, ErrorKind};

use bytes::{BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// Which side of the connection this is. Clients mask what they send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Server,
    Client,
}

/// The longest piece of a message that is returned at once.
pub(super) const MAX_PIECE: usize = 32 << 10;

/// The longest payload of a control frame.
const MAX_CONTROL: usize = 125;

const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

const FINAL: u8 = 0x80;
const MASKED: u8 = 0x80;

/// The close code of a connection that ended as it should.
const NORMAL_CLOSURE: u16 = 1000;

/// What the peer sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// A part of a text or binary message.
    Piece {
        bytes: Bytes,
        /// It is the first of its message.
        first: bool,
        /// It is the last of its message.
        last: bool,
    },
    /// To be answered with a pong of the same content.
    Ping(Bytes),
    Close,
}

/// Reads what the peer sends.
pub(super) struct Reader<R> {
    io: R,
    role: Role,
    /// The data frame that is being read.
    frame: Option<Frame>,
    /// A message has begun and its last frame has not come.
    in_message: bool,
    /// The next piece is the first of its message.
    first: bool,
    piece: BytesMut,
}

/// A frame whose header has been read.
struct Frame {
    opcode: u8,
    is_final: bool,
    mask: Mask,
    remaining: u64,
}

/// The key of a frame's payload, and how much of the payload it has been applied to.
struct Mask {
    key: Option<[u8; 4]>,
    at: usize,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    pub(super) fn new(io: R, role: Role) -> Reader<R> {
        Reader {
            io,
            role,
            frame: None,
            in_message: false,
            first: false,
            piece: BytesMut::new(),
        }
    }

    /// The next piece or control message; `None`: the peer closed the connection without a word.
    pub(super) async fn next(&mut self) -> io::Result<Option<Received>> {
        loop {
            if self.frame.is_none() {
                let Some(frame) = self.read_header().await? else {
                    return Ok(None);
                };
                if frame.opcode >= CLOSE {
                    match self.read_control(frame).await? {
                        Some(received) => return Ok(Some(received)),
                        None => continue,
                    }
                }
                self.begin_frame(frame)?;
            }

            if let Some(piece) = self.read_piece().await? {
                return Ok(Some(piece));
            }
        }
    }

    async fn read_header(&mut self) -> io::Result<Option<Frame>> {
        let mut start = [0; 2];
        match self.io.read_exact(&mut start).await {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error),
        }

        let [flags, length] = start;
        if flags & 0x70 != 0 {
            return Err(invalid("reserved bits of a frame are set"));
        }
        let remaining = match length & !MASKED {
            126 => u64::from(self.io.read_u16().await?),
            127 => self.io.read_u64().await?,
            short => u64::from(short),
        };

        let is_masked = length & MASKED != 0;
        if is_masked != (self.role == Role::Server) {
            return Err(invalid(
                "frames of clients are masked, those of servers are not",
            ));
        }
        let mut key = [0; 4];
        if is_masked {
            self.io.read_exact(&mut key).await?;
        }

        Ok(Some(Frame {
            opcode: flags & 0x0f,
            is_final: flags & FINAL != 0,
            mask: Mask {
                key: is_masked.then_some(key),
                at: 0,
            },
            remaining,
        }))
    }

    /// `None`: nothing that a caller has to know.
    async fn read_control(&mut self, mut frame: Frame) -> io::Result<Option<Received>> {
        let length = usize::try_from(frame.remaining).unwrap_or(usize::MAX);
        if length > MAX_CONTROL || !frame.is_final {
            return Err(invalid("a control frame is too long"));
        }
        let mut payload = vec![0; length];
        self.io.read_exact(&mut payload).await?;
        frame.mask.apply(&mut payload);

        match frame.opcode {
            CLOSE => Ok(Some(Received::Close)),
            PING => Ok(Some(Received::Ping(payload.into()))),
            PONG => Ok(None),
            _ => Err(invalid("an unknown control frame")),
        }
    }

    fn begin_frame(&mut self, frame: Frame) -> io::Result<()> {
        match (frame.opcode, self.in_message) {
            (TEXT | BINARY, false) => {
                self.first = true;
                self.in_message = true;
            }
            (CONTINUATION, true) => {}
            _ => return Err(invalid("a frame that does not fit the message")),
        }
        self.frame = Some(frame);
        Ok(())
    }

    /// Reads on in the present frame. `None`: it ended, but neither the piece nor the message did.
    async fn read_piece(&mut self) -> io::Result<Option<Received>> {
        let frame = self.frame.as_mut().expect("a frame has begun");
        let room = MAX_PIECE - self.piece.len();
        let length = room.min(usize::try_from(frame.remaining).unwrap_or(usize::MAX));
        let begin = self.piece.len();
        self.piece.resize(begin + length, 0);
        self.io.read_exact(&mut self.piece[begin..]).await?;
        frame.mask.apply(&mut self.piece[begin..]);
        frame.remaining -= length as u64;

        let (frame_ended, is_final) = (frame.remaining == 0, frame.is_final);
        if frame_ended {
            self.frame = None;
        }
        let last = frame_ended && is_final;
        if !last && self.piece.len() < MAX_PIECE {
            return Ok(None);
        }

        self.in_message = !last;
        Ok(Some(Received::Piece {
            bytes: self.piece.split().freeze(),
            first: std::mem::replace(&mut self.first, false),
            last,
        }))
    }
}

impl Mask {
    fn apply(&mut self, bytes: &mut [u8]) {
        let Some(key) = self.key else { return };
        for byte in bytes.iter_mut() {
            *byte ^= key[self.at];
            self.at = (self.at + 1) % key.len();
        }
    }
}

/// A message to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message {
    Binary(Bytes),
    Text(Bytes),
    Pong(Bytes),
    /// With the code of a normal closure: without one, clients report an abnormal closure.
    Close,
}

/// Writes messages, each as one frame.
pub(super) struct Writer<W> {
    io: W,
    role: Role,
    buffer: BytesMut,
}

impl<W: AsyncWrite + Unpin> Writer<W> {
    pub(super) fn new(io: W, role: Role) -> Writer<W> {
        Writer {
            io,
            role,
            buffer: BytesMut::new(),
        }
    }

    pub(super) async fn write(&mut self, message: Message) -> io::Result<()> {
        let (opcode, payload) = match message {
            Message::Binary(bytes) => (BINARY, bytes),
            Message::Text(bytes) => (TEXT, bytes),
            Message::Pong(bytes) => (PONG, bytes),
            Message::Close => (CLOSE, Bytes::copy_from_slice(&NORMAL_CLOSURE.to_be_bytes())),
        };

        self.buffer.clear();
        let key = (self.role == Role::Client).then(|| fastrand::u32(..).to_be_bytes());
        put_header(opcode, payload.len(), key, &mut self.buffer);
        let begin = self.buffer.len();
        self.buffer.put_slice(&payload);
        Mask { key, at: 0 }.apply(&mut self.buffer[begin..]);

        self.io.write_all(&self.buffer).await?;
        self.io.flush().await
    }
}

fn put_header(opcode: u8, length: usize, key: Option<[u8; 4]>, out: &mut BytesMut) {
    let masked = if key.is_some() { MASKED } else { 0 };
    out.put_u8(FINAL | opcode);
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(short), _) if short < 126 => out.put_u8(masked | short),
        (_, Ok(medium)) => {
            out.put_u8(masked | 126);
            out.put_u16(medium);
        }
        _ => {
            out.put_u8(masked | 127);
            out.put_u64(length as u64);
        }
    }
    if let Some(key) = key {
        out.put_slice(&key);
    }
}

fn invalid(why: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read_all(bytes: &[u8], role: Role) -> io::Result<Vec<Received>> {
        let mut reader = Reader::new(bytes, role);
        let mut all = Vec::new();
        while let Some(received) = reader.next().await? {
            all.push(received);
        }
        Ok(all)
    }

    fn piece(bytes: &[u8], first: bool, last: bool) -> Received {
        Received::Piece {
            bytes: Bytes::copy_from_slice(bytes),
            first,
            last,
        }
    }

    #[tokio::test]
    async fn messages_are_read_as_they_were_written() {
        for role in [Role::Server, Role::Client] {
            let other = match role {
                Role::Server => Role::Client,
                Role::Client => Role::Server,
            };
            for length in [0, 1, 125, 126, 127, 65_535, 65_536, 200_000] {
                let text: Vec<u8> = (0..=250).cycle().take(length).collect();
                let mut wire = Vec::new();
                let mut writer = Writer::new(&mut wire, role);
                let message = Message::Binary(text.clone().into());
                writer.write(message).await.unwrap();
                writer.write(Message::Close).await.unwrap();

                let mut read = Vec::new();
                for received in read_all(&wire, other).await.unwrap() {
                    match received {
                        Received::Piece { bytes, first, last } => {
                            assert!(bytes.len() <= MAX_PIECE);
                            assert_eq!(first, read.is_empty());
                            read.extend_from_slice(&bytes);
                            assert_eq!(last, read.len() == length, "{length}");
                        }
                        other => assert_eq!(other, Received::Close),
                    }
                }
                assert!(read == text, "{length}");
            }
        }
    }

    #[tokio::test]
    async fn frames_of_a_message_are_put_together_and_control_frames_may_come_between() {
        let wire = [
            &[0x01, 2][..], // text, to be continued
            b"ab",
            &[0x89, 1], // ping
            b"?",
            &[0x8a, 0], // pong
            &[0x80, 1], // the end of the text
            b"c",
            &[0x82, 0], // an empty message
            &[0x88, 2, 3, 232],
        ]
        .concat();
        let expected = vec![
            Received::Ping(Bytes::from_static(b"?")),
            piece(b"abc", true, true),
            piece(b"", true, true),
            Received::Close,
        ];
        assert_eq!(read_all(&wire, Role::Client).await.unwrap(), expected);
    }

    #[tokio::test]
    async fn frames_that_break_the_protocol_are_refused() {
        let check = async |role, wire: &[u8]| {
            let error = read_all(wire, role).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidData, "{wire:?}: {error}");
        };
        check(Role::Server, &[0x82, 1, b'a']).await; // not masked
        check(Role::Client, &[0x82, 0x81, 0, 0, 0, 0, b'a']).await; // masked
        check(Role::Client, &[0xc2, 0]).await; // a reserved bit
        check(Role::Client, &[0x83, 0]).await; // an unknown kind
        check(Role::Client, &[0x8b, 0]).await; // an unknown control frame
        check(Role::Client, &[0x80, 0]).await; // nothing to continue
        check(Role::Client, &[0x01, 0, 0x82, 0]).await; // a message within another
        check(Role::Client, &[0x09, 0]).await; // a ping in parts
        check(Role::Client, &[0x89, 126, 0, 126]).await; // a long ping
    }

    /// A peer that sends a long message makes the reader take a piece at a time.
    #[tokio::test]
    async fn a_long_message_is_not_read_ahead() {
        let (mut peer, io) = tokio::io::duplex(1024);
        let mut reader = Reader::new(io, Role::Client);
        let sent = tokio::spawn(async move {
            peer.write_all(&[0x82, 127]).await.unwrap();
            peer.write_u64(1 << 40).await.unwrap();
            let mut sent = 0;
            while peer.write_all(&[0; 1024]).await.is_ok() {
                sent += 1024;
            }
            sent
        });

        for _ in 0..3 {
            let received = reader.next().await.unwrap();
            assert!(matches!(
                received,
                Some(Received::Piece { last: false, .. })
            ));
        }
        drop(reader);
        assert!(sent.await.unwrap() <= 3 * MAX_PIECE + 2048);
    }
}
