//! A WebSocket whose messages are the bytes of another protocol.

use std::io;

use bytes::Bytes;
use tokio::io::{
    AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf,
};
use tokio::sync::mpsc;

use super::frames::{MAX_PIECE, Message, Reader, Received, Role, Writer};
use super::{CLOSE_TIMEOUT, WAITING_MESSAGES};

/// The buffer size of each direction.
const BUFFER: usize = 64 << 10;

/// The tunnelled stream, and the driver that does the I/O.
pub fn tunnel<IO>(io: IO, role: Role) -> (DuplexStream, impl Future<Output = io::Result<()>>)
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (inside, outside) = tokio::io::duplex(BUFFER);
    let driver = async move {
        let (from, to) = tokio::io::split(io);
        let mut reader = Reader::new(from, role);
        let (outgoing, incoming) = tokio::io::split(outside);
        let (pings, pinged) = mpsc::channel(WAITING_MESSAGES);
        tokio::select! {
            result = carry_in(&mut reader, incoming, pings) => return result,
            result = carry_out(Writer::new(to, role), outgoing, pinged) => result?,
        }

        // Closing with unread data would reset the connection, and the peer might miss the last
        // messages.
        let unread = async {
            while let Ok(Some(received)) = reader.next().await {
                if received == Received::Close {
                    return;
                }
            }
        };
        tokio::time::timeout(CLOSE_TIMEOUT, unread)
            .await
            .unwrap_or_default();

        Ok(())
    };

    (inside, driver)
}

async fn carry_in<R: AsyncRead + Unpin>(
    reader: &mut Reader<R>,
    mut to: WriteHalf<DuplexStream>,
    pings: mpsc::Sender<Bytes>,
) -> io::Result<()> {
    while let Some(received) = reader.next().await? {
        match received {
            Received::Piece { bytes, .. } => to.write_all(&bytes).await?,
            // A full queue means that the peer is written to anyway.
            Received::Ping(content) => pings.try_send(content).unwrap_or_default(),
            Received::Close => break,
        }
    }
    to.shutdown().await
}

async fn carry_out<W: AsyncWrite + Unpin>(
    mut writer: Writer<W>,
    mut from: ReadHalf<DuplexStream>,
    mut pinged: mpsc::Receiver<Bytes>,
) -> io::Result<()> {
    let mut piece = vec![0; MAX_PIECE];
    loop {
        let message = tokio::select! {
            read = from.read(&mut piece) => match read {
                Ok(count @ 1..) => Message::Binary(Bytes::copy_from_slice(&piece[..count])),
                _ => break,
            },
            Some(content) = pinged.recv() => Message::Pong(content),
        };
        writer.write(message).await?;
    }
    writer.write(Message::Close).await
}
