//! A WebSocket that only sends: what the client says is ignored, but for pings and its close.

use std::io;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

use super::frames::{Message, Reader, Received, Role, Writer};
use super::{CLOSE_TIMEOUT, WAITING_MESSAGES};

/// One message to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outgoing {
    Binary(Bytes),
    Text(Bytes),
}

/// Sends messages until there are no more or the client closes the connection, then closes it.
pub async fn send_messages<IO, S>(io: IO, messages: S) -> io::Result<()>
where
    IO: AsyncRead + AsyncWrite + Unpin + Send,
    S: Stream<Item = Outgoing> + Unpin,
{
    let (from, to) = tokio::io::split(io);
    let (pings, pinged) = mpsc::channel(WAITING_MESSAGES);
    let mut listening = std::pin::pin!(listen(Reader::new(from, Role::Server), pings));
    tokio::select! {
        closed = &mut listening => return closed,
        sent = send(Writer::new(to, Role::Server), messages, pinged) => sent?,
    }

    // Closing with unread data would reset the connection, and the client might miss the last
    // messages.
    match tokio::time::timeout(CLOSE_TIMEOUT, listening).await {
        Ok(closed) => closed,
        Err(_) => Ok(()),
    }
}

/// Returns when the client has closed the connection.
async fn listen<R: AsyncRead + Unpin>(
    mut reader: Reader<R>,
    pings: mpsc::Sender<Bytes>,
) -> io::Result<()> {
    while let Some(received) = reader.next().await? {
        match received {
            Received::Piece { .. } => {}
            // A full queue means that the client is written to anyway.
            Received::Ping(content) => pings.try_send(content).unwrap_or_default(),
            Received::Close => break,
        }
    }
    Ok(())
}

async fn send<W: AsyncWrite + Unpin, S: Stream<Item = Outgoing> + Unpin>(
    mut writer: Writer<W>,
    mut messages: S,
    mut pinged: mpsc::Receiver<Bytes>,
) -> io::Result<()> {
    loop {
        let message = tokio::select! {
            message = messages.next() => match message {
                Some(Outgoing::Binary(bytes)) => Message::Binary(bytes),
                Some(Outgoing::Text(bytes)) => Message::Text(bytes),
                None => break,
            },
            Some(content) = pinged.recv() => Message::Pong(content),
        };
        writer.write(message).await?;
    }
    writer.write(Message::Close).await
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    #[tokio::test]
    async fn messages_arrive_in_order_and_then_the_connection_closes() {
        let (client, server) = tokio::io::duplex(64);
        let messages =
            ["", "a", "b"].map(|text| Outgoing::Binary(Bytes::from_static(text.as_bytes())));
        let sending = send_messages(server, stream::iter(messages));
        let reading = async {
            let (from, to) = tokio::io::split(client);
            let (mut reader, mut writer) = (
                Reader::new(from, Role::Client),
                Writer::new(to, Role::Client),
            );
            let mut found = Vec::new();
            while let Ok(Some(received)) = reader.next().await {
                match received {
                    Received::Piece { bytes, .. } => found.push(bytes),
                    Received::Ping(_) => {}
                    Received::Close => break,
                }
            }
            writer.write(Message::Close).await.unwrap();
            found
        };

        let (sent, found) = tokio::join!(sending, reading);
        sent.unwrap();
        assert_eq!(found, ["", "a", "b"]);
    }

    #[tokio::test]
    async fn a_client_that_closes_ends_it() {
        let (client, server) = tokio::io::duplex(64);
        let sending = send_messages(server, stream::pending());
        let talking = async {
            let mut writer = Writer::new(client, Role::Client);
            writer
                .write(Message::Text(Bytes::from_static(b"ignored")))
                .await
                .unwrap();
            writer.write(Message::Close).await.unwrap();
        };

        let (sent, ()) = tokio::join!(sending, talking);
        sent.unwrap();
    }
}
