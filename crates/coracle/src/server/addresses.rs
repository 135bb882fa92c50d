//! Where the API server listens, and the addresses at which it is reached.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use coracle_apiserver::serve;
use tokio::net::TcpListener;
use tracing::info;

use super::cluster_network::{ClusterNetwork, nth_address};
use super::{Server, ServerError};
use crate::host;

impl Server {
    /// Listens on the port, or on a free one if the port is in use and was not set by a flag.
    pub(super) async fn listen(&self, port: u16) -> Result<TcpListener, ServerError> {
        let default = if self.no_node {
            Ipv4Addr::LOCALHOST
        } else {
            Ipv4Addr::UNSPECIFIED
        };

        let ip = self.bind_address.unwrap_or(IpAddr::V4(default));
        match serve::bind(SocketAddr::new(ip, port)).await {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && self.https_port.is_none() => {
                info!(port, "API server port in use; selecting a free port");
                serve::bind(SocketAddr::new(ip, 0))
                    .await
                    .map_err(|error| self.unbound(0, error))
            }
            listener => listener.map_err(|error| self.unbound(port, error)),
        }
    }

    pub(super) fn unbound(&self, port: u16, error: io::Error) -> ServerError {
        let ip = self
            .bind_address
            .unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        ServerError::Bind {
            address: SocketAddr::new(ip, port),
            error,
        }
    }
}

/// The address at which pods and other machines reach a listener on `bind`. A host without a route
/// falls back to the pod bridge, which has the first address of the pod range.
pub(super) fn reachable_address(bind: IpAddr, cluster_network: &ClusterNetwork) -> IpAddr {
    let reachable = host::reachable_address(bind);
    let bridge = nth_address(&cluster_network.cluster_cidr, 1)
        .filter(|_| reachable.is_loopback() && bind.is_unspecified());
    bridge.unwrap_or(reachable)
}

/// The addresses of the API server's serving certificate.
pub(super) fn certificate_addresses(
    bind: IpAddr,
    reachable: IpAddr,
    cluster_network: &ClusterNetwork,
) -> Vec<IpAddr> {
    let own = [bind, IpAddr::V4(Ipv4Addr::LOCALHOST), reachable];
    let service = nth_address(&cluster_network.service_cidr, 1);
    own.into_iter().chain(service).collect()
}

/// The address at which programs of this machine reach it.
pub(super) fn local_address(address: SocketAddr) -> SocketAddr {
    let local = if address.is_ipv6() {
        IpAddr::V6(Ipv6Addr::LOCALHOST)
    } else {
        IpAddr::V4(Ipv4Addr::LOCALHOST)
    };

    SocketAddr::new(
        if address.ip().is_unspecified() {
            local
        } else {
            address.ip()
        },
        address.port(),
    )
}
