//! Connections: TLS, HTTP/1.1 and HTTP/2, and shutdown.
//!
//! Each connection is a task in a set that the server owns ([`connection`]), on a socket that is
//! shared with a check for its end ([`socket`]) and has timeouts ([`pace`]). Certificates are read
//! again when their files change ([`files`](crate::files), [`tls`]). At shutdown the listener
//! closes first, then every connection finishes its requests, and those that take too long are
//! closed.

mod arriving;
mod connection;
mod pace;
mod socket;
mod tls;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use coracle_client::ConnectionLimit;
use rustix::process::{Resource, getrlimit};
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tracing::{debug, info};

pub use tls::{CertificateFiles, NamedCertificate, TlsConfig, TlsError, acceptor};

use crate::chain::Chain;

/// How long the accepting of connections rests after a failure.
const AFTER_FAILURE: Duration = Duration::from_millis(50);

/// What a listener needs to serve.
pub struct Serving {
    pub chain: Arc<Chain>,
    pub acceptor: TlsAcceptor,
    /// How many requests one HTTP/2 connection may have open.
    pub http2_streams: u32,
    /// The share of HTTP/2 requests that are the last of their connection.
    pub goaway_chance: f64,
    /// How long open requests may take to finish at shutdown.
    pub drain_within: Duration,
}

/// Connections from one address. A client library has one or two, each with many requests.
const MAX_PER_ADDRESS: usize = 512;

/// Leaves half of the process's descriptors to its other parts: the store, and the node that may run
/// beside it.
fn connection_limit() -> ConnectionLimit {
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    ConnectionLimit::new(
        MAX_PER_ADDRESS,
        usize::try_from(descriptors / 2).unwrap_or(usize::MAX),
    )
}

/// Connections that may wait to be accepted.
const WAITING: u32 = 1024;

/// Binds the address; the port may be 0. A shared one can also be bound by other processes that
/// share it, and the kernel divides connections among them.
pub fn bind(address: SocketAddr, is_shared: bool) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(is_shared)?;
    socket.bind(address)?;
    socket.listen(WAITING)
}

/// Serves until the server drains, then finishes what has begun.
pub async fn serve(listener: TcpListener, serving: Arc<Serving>) {
    let (mut connections, limit) = (JoinSet::new(), connection_limit());
    let draining = serving.chain.lifecycle.draining();
    tokio::pin!(draining);

    loop {
        tokio::select! {
            biased;
            () = draining.as_mut() => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, address)) => match limit.admit(address.ip()) {
                    Some(permit) => {
                        let served = connection::serve(stream, address, serving.clone());
                        connections.spawn(async move {
                            served.await;
                            drop(permit);
                        });
                    }
                    None => debug!(%address, "connection refused: too many open connections"),
                },
                // Too many open files, for example: the next attempt may succeed.
                Err(error) => {
                    info!(%error, "cannot accept connection");
                    tokio::time::sleep(AFTER_FAILURE).await;
                }
            },
        }
    }

    drop(listener);
    let drained = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(serving.drain_within, drained)
        .await
        .is_err()
    {
        info!(
            connections = connections.len(),
            "closing connections that are still open after the drain timeout"
        );
        connections.shutdown().await;
    }
}
