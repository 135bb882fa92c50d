//! A WebSocket whose messages are the bytes of another protocol.

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::{
    AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf,
};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use super::{CLOSE_TIMEOUT, Role, begin};

/// The buffer size of each direction.
const UNDER_WAY: usize = 64 << 10;

/// The tunnelled stream, and the driver that does the I/O.
pub fn tunnel<IO>(io: IO, role: Role) -> (DuplexStream, impl Future<Output = Result<(), Error>>)
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (inside, outside) = tokio::io::duplex(UNDER_WAY);
    let driver = async move {
        let (to, mut from) = begin(io, role).await.split();
        let (outgoing, incoming) = tokio::io::split(outside);
        tokio::select! {
            result = carry_in(&mut from, incoming) => return result,
            result = carry_out(to, outgoing) => result?,
        }

        // Closing with unread data would reset the connection, and the peer might miss the last
        // messages.
        let unread = async { while let Some(Ok(_)) = from.next().await {} };
        tokio::time::timeout(CLOSE_TIMEOUT, unread)
            .await
            .unwrap_or_default();

        Ok(())
    };

    (inside, driver)
}

async fn carry_in<IO: AsyncRead + AsyncWrite + Unpin>(
    from: &mut SplitStream<WebSocketStream<IO>>,
    mut to: WriteHalf<DuplexStream>,
) -> Result<(), Error> {
    while let Some(message) = from.next().await {
        match message? {
            Message::Binary(bytes) => to.write_all(&bytes).await.map_err(Error::Io)?,
            Message::Close(_) => break,
            _ => {}
        }
    }
    to.shutdown().await.map_err(Error::Io)
}

async fn carry_out<IO: AsyncRead + AsyncWrite + Unpin>(
    mut to: SplitSink<WebSocketStream<IO>, Message>,
    mut from: ReadHalf<DuplexStream>,
) -> Result<(), Error> {
    let mut piece = vec![0; 32 << 10];
    while let Ok(count @ 1..) = from.read(&mut piece).await {
        to.send(Message::binary(piece[..count].to_vec())).await?;
    }
    // Without a close code clients report an abnormal closure.
    let farewell = CloseFrame {
        code: CloseCode::Normal,
        reason: Utf8Bytes::default(),
    };
    to.send(Message::Close(Some(farewell))).await?;
    to.close().await
}
