//! Port forwarding: each connection to a pod's port is a pair of streams, one for data and one for
//! errors.
//!
//! Over SPDY, also tunnelled through a WebSocket, the client opens a pair for every local
//! connection ([`pairs`] matches the two). Over numbered channels there is one connection for each
//! port in the request.

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

/// The read buffer size of a port.
const PIECE: usize = 16 << 10;

/// Connects to ports.
pub trait Ports {
    type Connection: AsyncRead + AsyncWrite + Send;
    type Error: Display;

    fn connect(&self, port: u16) -> impl Future<Output = Result<Self::Connection, Self::Error>>;
}

/// Serves one client on an upgraded connection. `named` are the ports in its request.
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
            // Whether or not the client receives it, this is the end of the pair.
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
        // The client has reset the stream.
        () = cut.happened() => {}
    }

    pair.error.sender.finish().await.unwrap_or_default();
}

/// Copies bytes in both directions until both have ended.
async fn carry(connection: impl AsyncRead + AsyncWrite, receiver: &mut Receiver, sender: &Sender) {
    let (from, to) = tokio::io::split(connection);
    tokio::join!(inward(receiver, to), outward(from, sender));
}

async fn inward(receiver: &mut Receiver, mut to: impl AsyncWrite + Unpin) {
    while let Some(bytes) = receiver.next().await {
        if to.write_all(&bytes).await.is_err() {
            return;
        }
    }
    // An error means that the port was closed first.
    to.shutdown().await.unwrap_or_default();
}

async fn outward(mut from: impl AsyncRead + Unpin, sender: &Sender) {
    let mut piece = BytesMut::new();
    loop {
        piece.reserve(PIECE);
        match from.read_buf(&mut piece).await {
            Ok(1..) if sender.send(piece.split().freeze()).await.is_ok() => {}
            _ => break,
        }
    }
    sender.finish().await.unwrap_or_default();
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
    mut receiver: Receiver,
    ports: &impl Ports,
) {
    // The first message of a channel is its port number.
    let number = Bytes::copy_from_slice(&port.to_le_bytes());
    if data.send(number.clone()).await.is_err() || error.send(number).await.is_err() {
        return;
    }

    match ports.connect(port).await {
        Err(failure) => error
            .send(Bytes::from(failure.to_string()))
            .await
            .unwrap_or_default(),
        // Such a client cannot half-close: when the port is closed, the channel ends.
        Ok(connection) => {
            let (from, to) = tokio::io::split(connection);
            tokio::select! {
                () = inward(&mut receiver, to) => {}
                () = outward(from, data) => {}
            }
        }
    }
}
