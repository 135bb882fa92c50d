//! A WebSocket whose messages are the bytes of another protocol, one after the other.

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::{
    AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf,
};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use super::{GOODBYE_WITHIN, Role, begin};

/// How much may be under way in each direction.
const UNDER_WAY: usize = 64 << 10;

/// The bytes that the tunnel carries, and the driver in which they come and go.
pub fn tunnel<IO>(io: IO, role: Role) -> (DuplexStream, impl Future<Output = Result<(), Error>>)
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (inside, outside) = tokio::io::duplex(UNDER_WAY);
    let driver = async move {
        let (to, mut from) = begin(io, role).await.split();
        let (leaving, coming) = tokio::io::split(outside);
        tokio::select! {
            result = carry_in(&mut from, coming) => return result,
            result = carry_out(to, leaving) => result?,
        }

        // Closed with something unread the connection would be reset, and the peer might miss our
        // last words.
        let unread = async { while let Some(Ok(_)) = from.next().await {} };
        tokio::time::timeout(GOODBYE_WITHIN, unread)
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
    // Without a code clients take it for an accident.
    let farewell = CloseFrame {
        code: CloseCode::Normal,
        reason: Utf8Bytes::default(),
    };
    to.send(Message::Close(Some(farewell))).await?;
    to.close().await
}
