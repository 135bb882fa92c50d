//! Streams as numbered channels: a message is a channel's number and its bytes, as they are or in
//! base64.

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

use super::{GOODBYE_WITHIN, Role, begin};
use crate::pipe::{Gone, Inlet, Receiver, Sender, Way, inlet};

/// Messages that wait to be written.
const WAITING_MESSAGES: usize = 16;

/// The longest piece of a stream in one message of ours.
const LONGEST_PIECE: usize = 32 << 10;

/// The number that stands for "this channel is closed", with the channel behind it.
const CLOSE: u8 = 255;

/// How messages are written.
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
    /// The way out of a channel.
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

/// Opens `count` channels, and the driver in which bytes come and go.
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

        tokio::time::timeout(GOODBYE_WITHIN, read)
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
    // Without a code clients take it for an accident.
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
            // So a peer leaves that has had enough.
            Err(Error::ConnectionClosed | Error::AlreadyClosed) => return Ok(()),
            Err(error) => return Err(error),
        };

        match coding.decode(&bytes) {
            Came::Bytes(channel, bytes) => {
                if let Some(Some(inlet)) = inlets.get(channel) {
                    inlet.put(bytes).await;
                }
            }
            Came::Closed(channel) => match inlets.get_mut(channel) {
                Some(inlet) => *inlet = None,
                None => return Ok(()),
            },
            Came::Nothing => {}
            Came::Nonsense => return Ok(()),
        }
    }

    Ok(())
}

/// What a message says.
#[derive(Debug, PartialEq, Eq)]
enum Came {
    Bytes(usize, Bytes),
    Closed(usize),
    Nothing,
    /// After this nobody knows what the peer means.
    Nonsense,
}

impl Coding {
    fn decode(self, message: &Bytes) -> Came {
        let Some(&first) = message.first() else {
            return Came::Nothing;
        };
        if self.closes && first == CLOSE {
            return match message[1..] {
                [channel] => Came::Closed(usize::from(channel)),
                _ => Came::Nonsense,
            };
        }

        let bytes = message.slice(1..);
        if !self.base64 {
            return Came::Bytes(usize::from(first), bytes);
        }

        match STANDARD.decode(&bytes) {
            Ok(decoded) => Came::Bytes(usize::from(first.wrapping_sub(b'0')), decoded.into()),
            Err(_) => Came::Nothing,
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

/// The way out of one channel.
pub(crate) struct Outlet {
    channel: u8,
    coding: Coding,
    closes: bool,
    outbox: mpsc::Sender<Message>,
}

impl Outlet {
    /// Nothing at all is a message as well: it tells a client that the connection stands.
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
    fn messages_say_which_channel_they_are_for() {
        let check = |base64: bool, closes: bool, message: &'static [u8], expected: Came| {
            assert_eq!(
                Coding { base64, closes }.decode(&Bytes::from_static(message)),
                expected,
                "{message:?}"
            );
        };
        check(false, false, b"", Came::Nothing);

        check(
            false,
            false,
            b"\x00abc",
            Came::Bytes(0, Bytes::from_static(b"abc")),
        );

        check(
            false,
            false,
            b"\xff\x00",
            Came::Bytes(255, Bytes::from_static(b"\x00")),
        );

        check(false, true, b"\xff\x00", Came::Closed(0));
        check(false, true, b"\xff", Came::Nonsense);
        check(false, true, b"\xff\x00\x00", Came::Nonsense);
        check(
            true,
            false,
            b"0YWJj",
            Came::Bytes(0, Bytes::from_static(b"abc")),
        );

        check(true, false, b"0!", Came::Nothing);
        check(
            true,
            false,
            b"\x00YWJj",
            Came::Bytes(208, Bytes::from_static(b"abc")),
        );
    }

    #[test]
    fn what_is_written_is_read() {
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
                Came::Bytes(4, Bytes::from_static(b"\x00\xffabc"))
            );
        }
    }
}
