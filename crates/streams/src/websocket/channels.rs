//! Streams as numbered channels: a message is a channel's number and its bytes, raw or in base64.

use std::io;
use std::pin::pin;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

use super::frames::{Message, Reader, Received, Role, Writer};
use super::{CLOSE_TIMEOUT, WAITING_MESSAGES};
use crate::pipe::{Gone, Inlet, Receiver, Sender, SenderKind, inlet};

/// The maximum size of our messages.
const LONGEST_PIECE: usize = 32 << 10;

/// The channel number of a close message, followed by the closed channel.
const CLOSE: u8 = 255;

/// The encoding of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coding {
    /// As text: a digit and base64.
    pub base64: bool,
    /// Whether a single channel can be closed.
    pub closes: bool,
}

/// The channels of a connection. When they and all their senders are dropped, the connection is
/// closed.
pub struct Channels {
    pub receivers: Vec<Receiver>,
    outbox: mpsc::Sender<Message>,
    coding: Coding,
    role: Role,
}

impl Channels {
    /// The sender of a channel.
    pub fn sender(&self, channel: u8) -> Sender {
        // Only clients close single channels: those of a server end with the connection.
        let closes = self.coding.closes && self.role == Role::Client;
        Sender(SenderKind::Channel(Outlet {
            channel,
            coding: self.coding,
            closes,
            outbox: self.outbox.clone(),
        }))
    }
}

/// Opens `count` channels, and the driver that does the I/O.
pub fn channels<IO>(
    io: IO,
    role: Role,
    coding: Coding,
    count: usize,
) -> (Channels, impl Future<Output = io::Result<()>>)
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (inlets, receivers): (Vec<Inlet>, Vec<Receiver>) = (0..count).map(|_| inlet()).unzip();
    let (outbox, waiting) = mpsc::channel(WAITING_MESSAGES);
    // Weak: pings of the peer must not keep a connection open that has been finished.
    let replies = outbox.downgrade();
    let driver = async move {
        let (from, to) = tokio::io::split(io);
        let mut read = pin!(read(Reader::new(from, role), inlets, coding, replies));
        let mut write = pin!(write(Writer::new(to, role), waiting));
        tokio::select! {
            result = &mut read => return result,
            result = &mut write => result?,
        }

        tokio::time::timeout(CLOSE_TIMEOUT, read)
            .await
            .unwrap_or(Ok(()))
    };

    (
        Channels {
            receivers,
            outbox,
            coding,
            role,
        },
        driver,
    )
}

async fn write<W: AsyncWrite + Unpin>(
    mut writer: Writer<W>,
    mut waiting: mpsc::Receiver<Message>,
) -> io::Result<()> {
    while let Some(message) = waiting.recv().await {
        writer.write(message).await?;
    }
    writer.write(Message::Close).await
}

async fn read<R: AsyncRead + Unpin>(
    mut reader: Reader<R>,
    inlets: Vec<Inlet>,
    coding: Coding,
    replies: mpsc::WeakSender<Message>,
) -> io::Result<()> {
    let mut inlets: Vec<Option<Inlet>> = inlets.into_iter().map(Some).collect();
    let mut decoder = Decoder::new(coding);
    while let Some(received) = reader.next().await? {
        let decoded = match received {
            Received::Piece { bytes, first, last } => decoder.decode(bytes, first, last),
            Received::Ping(content) => {
                if let Some(outbox) = replies.upgrade() {
                    // A full queue means that the peer is written to anyway.
                    outbox.try_send(Message::Pong(content)).unwrap_or_default();
                }
                continue;
            }
            Received::Close => return Ok(()),
        };

        match decoded {
            Decoded::Bytes(channel, bytes) => {
                if let Some(Some(inlet)) = inlets.get(channel) {
                    inlet.put(bytes).await;
                }
            }
            Decoded::Closed(channel) => match inlets.get_mut(channel) {
                Some(inlet) => *inlet = None,
                None => return Ok(()),
            },
            Decoded::Nothing => {}
            Decoded::Invalid => return Ok(()),
        }
    }

    Ok(())
}

/// A decoded message.
#[derive(Debug, PartialEq, Eq)]
enum Decoded {
    Bytes(usize, Bytes),
    Closed(usize),
    Nothing,
    /// The connection ends.
    Invalid,
}

/// Decodes messages that come in pieces.
struct Decoder {
    coding: Coding,
    /// The channel of the present message; `None`: what is left of it is ignored.
    channel: Option<u8>,
    /// Base64 that is not a whole group of four characters yet.
    rest: Vec<u8>,
}

impl Decoder {
    fn new(coding: Coding) -> Decoder {
        Decoder {
            coding,
            channel: None,
            rest: Vec::new(),
        }
    }

    fn decode(&mut self, mut piece: Bytes, first: bool, last: bool) -> Decoded {
        if first {
            self.rest.clear();
            self.channel = None;
            if piece.is_empty() {
                return Decoded::Nothing;
            }
            let number = piece.split_to(1)[0];
            if self.coding.closes && number == CLOSE {
                return match piece[..] {
                    [channel] if last => Decoded::Closed(usize::from(channel)),
                    _ => Decoded::Invalid,
                };
            }
            self.channel = Some(number);
        }

        let Some(number) = self.channel else {
            return Decoded::Nothing;
        };
        if !self.coding.base64 {
            return Decoded::Bytes(usize::from(number), piece);
        }

        self.rest.extend_from_slice(&piece);
        let whole = if last {
            self.rest.len()
        } else {
            self.rest.len() / 4 * 4
        };
        match STANDARD.decode(&self.rest[..whole]) {
            Ok(decoded) => {
                self.rest.drain(..whole);
                Decoded::Bytes(usize::from(number.wrapping_sub(b'0')), decoded.into())
            }
            Err(_) => {
                self.channel = None;
                Decoded::Nothing
            }
        }
    }
}

impl Coding {
    fn encode(self, channel: u8, bytes: &[u8]) -> Message {
        if self.base64 {
            let digit = char::from(b'0'.wrapping_add(channel));
            return Message::Text(format!("{digit}{}", STANDARD.encode(bytes)).into());
        }
        let mut message = BytesMut::with_capacity(1 + bytes.len());
        message.put_u8(channel);
        message.put_slice(bytes);
        Message::Binary(message.freeze())
    }
}

/// The sender of one channel.
pub(crate) struct Outlet {
    channel: u8,
    coding: Coding,
    closes: bool,
    outbox: mpsc::Sender<Message>,
}

impl Outlet {
    /// An empty message is valid: it tells a client that the connection is established.
    pub(crate) async fn send(&self, bytes: Bytes) -> Result<(), Gone> {
        let mut rest = bytes;
        loop {
            let piece = rest.split_to(rest.len().min(LONGEST_PIECE));
            self.outbox
                .send(self.coding.encode(self.channel, &piece))
                .await
                .map_err(|_| Gone)?;
            if rest.is_empty() {
                return Ok(());
            }
        }
    }

    pub(crate) async fn finish(&self) -> Result<(), Gone> {
        if !self.closes {
            return Ok(());
        }
        let message = Message::Binary(Bytes::copy_from_slice(&[CLOSE, self.channel]));
        self.outbox.send(message).await.map_err(|_| Gone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_a_channel_number() {
        let check = |base64: bool, closes: bool, message: &'static [u8], expected: Decoded| {
            assert_eq!(
                Decoder::new(Coding { base64, closes }).decode(
                    Bytes::from_static(message),
                    true,
                    true
                ),
                expected,
                "{message:?}"
            );
        };

        check(false, false, b"", Decoded::Nothing);
        check(
            false,
            false,
            b"\x00abc",
            Decoded::Bytes(0, Bytes::from_static(b"abc")),
        );

        check(
            false,
            false,
            b"\xff\x00",
            Decoded::Bytes(255, Bytes::from_static(b"\x00")),
        );

        check(false, true, b"\xff\x00", Decoded::Closed(0));
        check(false, true, b"\xff", Decoded::Invalid);
        check(false, true, b"\xff\x00\x00", Decoded::Invalid);
        check(
            true,
            false,
            b"0YWJj",
            Decoded::Bytes(0, Bytes::from_static(b"abc")),
        );

        check(true, false, b"0!", Decoded::Nothing);
        check(
            true,
            false,
            b"\x00YWJj",
            Decoded::Bytes(208, Bytes::from_static(b"abc")),
        );
    }

    #[test]
    fn encoded_messages_are_decoded() {
        for coding in [
            Coding {
                base64: true,
                closes: false,
            },
            Coding {
                base64: false,
                closes: true,
            },
        ] {
            let (Message::Binary(message) | Message::Text(message)) =
                coding.encode(4, b"\x00\xffabc")
            else {
                panic!("data is sent as text or binary");
            };
            assert_eq!(
                Decoder::new(coding).decode(message, true, true),
                Decoded::Bytes(4, Bytes::from_static(b"\x00\xffabc"))
            );
        }
    }

    #[test]
    fn a_message_may_come_in_pieces_of_any_length() {
        let text: Vec<u8> = (0..=255).collect();
        for base64 in [true, false] {
            let coding = Coding {
                base64,
                closes: false,
            };
            let (Message::Binary(message) | Message::Text(message)) = coding.encode(2, &text)
            else {
                panic!("data is sent as text or binary");
            };
            for length in [1, 2, 3, 5, 64, 1000] {
                let mut decoder = Decoder::new(coding);
                let mut decoded = Vec::new();
                let pieces: Vec<&[u8]> = message.chunks(length).collect();
                for (at, piece) in pieces.iter().enumerate() {
                    let last = at + 1 == pieces.len();
                    match decoder.decode(Bytes::copy_from_slice(piece), at == 0, last) {
                        Decoded::Bytes(2, bytes) => decoded.extend_from_slice(&bytes),
                        other => panic!("{other:?}"),
                    }
                }
                assert_eq!(decoded, text, "{base64} {length}");
            }
        }
    }
}
