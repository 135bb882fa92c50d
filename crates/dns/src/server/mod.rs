//! The DNS server: receives queries over UDP and TCP, and answers them from the zone or upstream
//! servers.

mod forwarding;
mod handler;
mod metrics;
mod records;
mod upstream;

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use hickory_server::Server;
use tokio::net::{TcpListener, UdpSocket};

pub use handler::Handler;
pub use upstream::{Upstream, UpstreamError};

/// Idle timeout of TCP connections.
const IDLE: Duration = Duration::from_secs(10);
/// Responses queued per TCP connection.
const MAX_QUEUED: usize = 32;
/// Attempts to find a port that is free for both protocols.
const PORT_TRIES: u32 = 20;

/// The bound sockets of a server.
pub struct Sockets {
    pairs: Vec<(UdpSocket, TcpListener)>,
}

impl Sockets {
    /// Binds UDP and TCP on each address. Port 0 selects one that is free for both.
    pub async fn open(addresses: &[SocketAddr]) -> io::Result<Sockets> {
        let mut pairs = Vec::with_capacity(addresses.len());
        for address in addresses {
            pairs.push(Self::pair(*address).await?);
        }
        Ok(Sockets { pairs })
    }

    async fn pair(address: SocketAddr) -> io::Result<(UdpSocket, TcpListener)> {
        let mut tries = if address.port() == 0 { PORT_TRIES } else { 1 };
        loop {
            tries -= 1;
            let udp = UdpSocket::bind(address).await?;
            match TcpListener::bind(udp.local_addr()?).await {
                // The port is in use for TCP.
                Err(error) if error.kind() == io::ErrorKind::AddrInUse && tries > 0 => {}
                tcp => return Ok((udp, tcp?)),
            }
        }
    }

    /// The bound addresses.
    pub fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        self.pairs.iter().map(|(udp, _)| udp.local_addr()).collect()
    }

    /// Serves until dropped.
    pub async fn serve(self, handler: Handler) {
        let mut server = Server::new(handler);
        for (udp, tcp) in self.pairs {
            server.register_socket(udp);
            server.register_listener(tcp, IDLE, MAX_QUEUED);
        }
        if let Err(error) = server.block_until_done().await {
            tracing::error!(%error, "DNS server stopped");
        }
    }
}
