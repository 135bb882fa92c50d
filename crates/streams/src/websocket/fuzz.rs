//! Properties of what a WebSocket peer sends.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use futures_util::future::join_all;
use tokio::io::{AsyncRead, ReadBuf};

use super::frames::{MAX_PIECE, Message, Reader, Received, Role, Writer};
use super::{Coding, channels};

/// How the bytes arrive changes nothing, and what was read is read again after it was written.
pub(crate) async fn frames(data: &[u8], settings: u8, split: usize) {
    let role = role(settings);
    let (whole, failed) = read_all(data, role).await;
    let (pieces, pieces_failed) = read_all(Slow { data, split }, role).await;
    assert_eq!((&whole, failed), (&pieces, pieces_failed));

    let mut written = Vec::new();
    let mut writer = Writer::new(&mut written, other(role));
    for received in &whole {
        // Pieces of a message become messages.
        let message = match received {
            Received::Piece { bytes, .. } => Message::Binary(bytes.clone()),
            Received::Ping(content) => Message::Pong(content.clone()),
            Received::Close => Message::Close,
        };
        writer
            .write(message)
            .await
            .expect("memory can be written to");
    }

    let (again, failed) = read_all(&written[..], role).await;
    assert!(!failed);
    assert_eq!(content(&again), content(&whole));
}

fn content(received: &[Received]) -> BytesMut {
    let pieces = received.iter().filter_map(|received| match received {
        Received::Piece { bytes, .. } => Some(bytes),
        _ => None,
    });
    pieces.flatten().copied().collect()
}

/// All that is read, and whether reading failed.
async fn read_all(io: impl AsyncRead + Unpin, role: Role) -> (Vec<Received>, bool) {
    let (mut reader, mut all) = (Reader::new(io, role), Vec::new());
    loop {
        match reader.next().await {
            Ok(Some(received)) => {
                if let Received::Piece { bytes, .. } = &received {
                    assert!(bytes.len() <= MAX_PIECE);
                }
                all.push(received);
            }
            Ok(None) => return (all, false),
            Err(_) => return (all, true),
        }
    }
}

/// Channels end when the peer has sent all its bytes.
pub(crate) async fn connection(data: Bytes, settings: u8) {
    let coding = Coding {
        base64: settings & 2 != 0,
        closes: settings & 4 != 0,
    };
    let io = tokio::io::join(io::Cursor::new(data), tokio::io::sink());
    let (mut connection, driver) = channels(io, role(settings), coding, 3);

    let receivers = std::mem::take(&mut connection.receivers);
    let work = join_all(
        receivers
            .into_iter()
            .map(|mut receiver| async move { while receiver.next().await.is_some() {} }),
    );
    let (result, _) = tokio::join!(driver, work);
    drop(result);
}

fn role(settings: u8) -> Role {
    if settings & 1 == 0 {
        Role::Server
    } else {
        Role::Client
    }
}

fn other(role: Role) -> Role {
    match role {
        Role::Server => Role::Client,
        Role::Client => Role::Server,
    }
}

/// Returns a few bytes at a time.
struct Slow<'a> {
    data: &'a [u8],
    split: usize,
}

impl AsyncRead for Slow<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let length = self.split.min(self.data.len()).min(into.remaining());
        let (now, later) = self.data.split_at(length);
        into.put_slice(now);
        self.data = later;
        Poll::Ready(Ok(()))
    }
}
