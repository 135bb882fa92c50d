//! Ports of a pod: each connection to one is a pair of streams, one for its data and one to tell
//! why it failed.
//!
//! Over SPDY, also where that is tunnelled through a WebSocket, the client opens a pair whenever
//! somebody connects to it ([`pairs`] puts the two together). Over numbered channels there is one
//! connection for each port that the request names.

mod pairs;

use std::fmt::Display;

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::pipe::{Receiver, Sender, drive};
use crate::spdy::{self, Side};
use crate::upgrade::Protocol;
use crate::websocket::{self, Channels, Role};
use pairs::{Pair, Pairs};

/// How much is read from a port at a time.
const PIECE: usize = 16 << 10;

/// Makes connections to ports.
pub trait Ports {
    type Connection: AsyncRead + AsyncWrite + Send;
    type Error: Display;

    fn connect(&self, port: u16) -> impl Future<Output = Result<Self::Connection, Self::Error>>;
}

/// Serves one client on a connection that has left HTTP. `named` are the ports that its request
/// names.
pub async fn serve<IO, P>(io: IO, protocol: Protocol, named: &[u16], ports: &P)
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    P: Ports,
{
    match protocol {
        Protocol::Spdy { .. } => serve_spdy(io, ports).await,
        Protocol::Tunnel => {
            let (inside, driver) = websocket::tunnel(io, Role::Server);
            drive(driver, serve_spdy(inside, ports)).await;
        }
        Protocol::Channels { coding, .. } => {
            let (channels, driver) = websocket::channels(io, Role::Server, coding, 2 * named.len());
            drive(driver, serve_channels(channels, named, ports)).await;
        }
    }
}

async fn serve_spdy<IO>(io: IO, ports: &impl Ports)
where
    IO: AsyncRead + AsyncWrite + Send + 'static,
{
    let (connection, driver) = spdy::open(io, Side::Server);
    drive(driver, serve_pairs(connection, ports)).await;
}

async fn serve_pairs(mut connection: spdy::Connection, ports: &impl Ports) {
    let (mut pairs, mut carried) = (Pairs::default(), FuturesUnordered::new());
    loop {
        tokio::select! {
            incoming = connection.incoming() => match incoming {
                None => return,
                Some(incoming) => match pairs.take(incoming).await {
                    Ok(Some(pair)) => carried.push(carry_pair(pair, ports)),
                    Ok(None) => {}
                    Err(_gone) => return,
                },
            },
            Some(()) = carried.next() => {}
            () = pairs.expired() => {}
        }
    }
}

async fn carry_pair(mut pair: Pair, ports: &impl Ports) {
    let connection = match ports.connect(pair.port).await {
        Ok(connection) => connection,
        Err(error) => {
            // Whether or not the client still hears it, this is the end of the pair.
            pair.error
                .sender
                .send(Bytes::from(error.to_string()))
                .await
                .unwrap_or_default();
            pair.error.sender.finish().await.unwrap_or_default();
            return pair.data.reset().await.unwrap_or_default();
        }
    };

    let cut = pair.data.cut();
    tokio::select! {
        () = carry(connection, &mut pair.data.receiver, &pair.data.sender) => {}
        // The client has had enough of it.
        () = cut.happened() => {}
    }

    pair.error.sender.finish().await.unwrap_or_default();
}

/// Carries bytes in both directions until both have ended.
async fn carry(connection: impl AsyncRead + AsyncWrite, coming: &mut Receiver, going: &Sender) {
    let (from, to) = tokio::io::split(connection);
    tokio::join!(inward(coming, to), outward(from, going));
}

async fn inward(coming: &mut Receiver, mut to: impl AsyncWrite + Unpin) {
    while let Some(bytes) = coming.next().await {
        if to.write_all(&bytes).await.is_err() {
            return;
        }
    }
    // An error says that the port has been closed first.
    to.shutdown().await.unwrap_or_default();
}

async fn outward(mut from: impl AsyncRead + Unpin, going: &Sender) {
    let mut piece = BytesMut::new();
    loop {
        piece.reserve(PIECE);
        match from.read_buf(&mut piece).await {
            Ok(1..) if going.send(piece.split().freeze()).await.is_ok() => {}
            _ => break,
        }
    }
    going.finish().await.unwrap_or_default();
}

async fn serve_channels(channels: Channels, named: &[u16], ports: &impl Ports) {
    let senders: Vec<Sender> = (0..2 * named.len())
        .filter_map(|at| u8::try_from(at).ok())
        .map(|at| channels.sender(at))
        .collect();
    let receivers = channels.receivers.into_iter().step_by(2);
    let pairs = named.iter().zip(senders.chunks_exact(2)).zip(receivers);
    join_all(pairs.map(|((port, senders), receiver)| {
        carry_channels(*port, &senders[0], &senders[1], receiver, ports)
    }))
    .await;
}

async fn carry_channels(
    port: u16,
    data: &Sender,
    error: &Sender,
    mut coming: Receiver,
    ports: &impl Ports,
) {
    // A client is told first which port a channel is about.
    let number = Bytes::copy_from_slice(&port.to_le_bytes());
    if data.send(number.clone()).await.is_err() || error.send(number).await.is_err() {
        return;
    }

    match ports.connect(port).await {
        Err(failure) => error
            .send(Bytes::from(failure.to_string()))
            .await
            .unwrap_or_default(),
        // Such a client cannot close its side alone: when the port is closed, nothing more is to be
        // said.
        Ok(connection) => {
            let (from, to) = tokio::io::split(connection);
            tokio::select! {
                () = inward(&mut coming, to) => {}
                () = outward(from, data) => {}
            }
        }
    }
}
