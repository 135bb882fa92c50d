//! Questions from the network: UDP and TCP in, the zone or the upstream servers asked, an answer
//! out.

mod handler;
mod records;
mod upstream;

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use hickory_server::Server;
use tokio::net::{TcpListener, UdpSocket};

pub use handler::Handler;
pub use upstream::{Upstream, UpstreamError};

/// A connection that asks nothing for so long is closed.
const IDLE: Duration = Duration::from_secs(10);
/// So many answers wait for a connection that does not read them.
const UNREAD: usize = 32;
/// So many ports are tried until one is free for both protocols.
const PORT_TRIES: u32 = 20;

/// The sockets of a server, open and not yet served.
pub struct Sockets {
    pairs: Vec<(UdpSocket, TcpListener)>,
}

impl Sockets {
    /// Opens UDP and TCP on each address. Port 0 takes one that is free for both.
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
                // Somebody else has this port of the other protocol.
                Err(error) if error.kind() == io::ErrorKind::AddrInUse && tries > 0 => {}
                tcp => return Ok((udp, tcp?)),
            }
        }
    }

    /// Where they are.
    pub fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        self.pairs.iter().map(|(udp, _)| udp.local_addr()).collect()
    }

    /// Answers until dropped.
    pub async fn serve(self, handler: Handler) {
        let mut server = Server::new(handler);
        for (udp, tcp) in self.pairs {
            server.register_socket(udp);
            server.register_listener(tcp, IDLE, UNREAD);
        }
        if let Err(error) = server.block_until_done().await {
            tracing::error!(%error, "names are no longer answered");
        }
    }
}
