//! Streams as numbered channels: a message is a channel's number and its bytes, raw or in base64.

use std::pin::pin;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{BufMut, Bytes, BytesMut};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use super::{CLOSE_TIMEOUT, Role, begin};
use crate::pipe::{Gone, Inlet, Receiver, Sender, Way, inlet};

/// The queue length of messages to be written.
const WAITING_MESSAGES: usize = 16;

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
        Sender(Way::Channel(Outlet {
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
) -> (Channels, impl Future<Output = Result<(), Error>>)
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (inlets, receivers): (Vec<Inlet>, Vec<Receiver>) = (0..count).map(|_| inlet()).unzip();
    let (outbox, waiting) = mpsc::channel(WAITING_MESSAGES);
    let driver = async move {
        let (to, from) = begin(io, role).await.split();
        let mut read = pin!(read(from, inlets, coding));
        let mut write = pin!(write(to, waiting));
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

async fn write<IO: AsyncRead + AsyncWrite + Unpin>(
    mut io: SplitSink<WebSocketStream<IO>, Message>,
    mut waiting: mpsc::Receiver<Message>,
) -> Result<(), Error> {
    while let Some(message) = waiting.recv().await {
        io.send(message).await?;
    }
    // Without a close code clients report an abnormal closure.
    let farewell = CloseFrame {
        code: CloseCode::Normal,
        reason: Utf8Bytes::default(),
    };
    io.send(Message::Close(Some(farewell))).await?;
    io.close().await
}

async fn read<IO: AsyncRead + AsyncWrite + Unpin>(
    mut io: SplitStream<WebSocketStream<IO>>,
    inlets: Vec<Inlet>,
    coding: Coding,
) -> Result<(), Error> {
    let mut inlets: Vec<Option<Inlet>> = inlets.into_iter().map(Some).collect();
    while let Some(message) = io.next().await {
        let bytes = match message {
            Ok(Message::Binary(bytes)) => bytes,
            Ok(Message::Text(text)) => text.into(),
            Ok(Message::Close(_)) => return Ok(()),
            Ok(_) => continue,
            // The peer closes the connection.
            Err(Error::ConnectionClosed | Error::AlreadyClosed) => return Ok(()),
            Err(error) => return Err(error),
        };

        match coding.decode(&bytes) {
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
            Decoded::Nonsense => return Ok(()),
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
    /// Invalid: the connection ends.
    Nonsense,
}

impl Coding {
    fn decode(self, message: &Bytes) -> Decoded {
        let Some(&first) = message.first() else {
            return Decoded::Nothing;
        };
        if self.closes && first == CLOSE {
            return match message[1..] {
                [channel] => Decoded::Closed(usize::from(channel)),
                _ => Decoded::Nonsense,
            };
        }

        let bytes = message.slice(1..);
        if !self.base64 {
            return Decoded::Bytes(usize::from(first), bytes);
        }

        match STANDARD.decode(&bytes) {
            Ok(decoded) => Decoded::Bytes(usize::from(first.wrapping_sub(b'0')), decoded.into()),
            Err(_) => Decoded::Nothing,
        }
    }

    fn encode(self, channel: u8, bytes: &[u8]) -> Message {
        if self.base64 {
            let digit = char::from(b'0'.wrapping_add(channel));
            return Message::text(format!("{digit}{}", STANDARD.encode(bytes)));
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
        let message = Message::binary(Bytes::copy_from_slice(&[CLOSE, self.channel]));
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
                Coding { base64, closes }.decode(&Bytes::from_static(message)),
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
        check(false, true, b"\xff", Decoded::Nonsense);
        check(false, true, b"\xff\x00\x00", Decoded::Nonsense);
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
            let message = coding.encode(4, b"\x00\xffabc");
            assert_eq!(
                coding.decode(&message.into_data()),
                Decoded::Bytes(4, Bytes::from_static(b"\x00\xffabc"))
            );
        }
    }
}
