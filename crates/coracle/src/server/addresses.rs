//! Where the API server listens, and the addresses at which it is reached.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use coracle_apiserver::serve;
use ipnet::IpNet;
use tokio::net::TcpListener;
use tracing::info;

use super::cluster_network::{ClusterNetwork, nth_address};
use super::ranges::{Ranges, is_four};
use super::{Server, ServerError};
use crate::host;

impl Server {
    /// Listens on the port, or on a free one if the port is in use and was not set by a flag.
    pub(super) fn listen(
        &self,
        cluster_network: &ClusterNetwork,
    ) -> Result<TcpListener, ServerError> {
        let port = cluster_network.https_port;
        let ip = self
            .bind_address
            .unwrap_or_else(|| self.default_bind_address(cluster_network));
        match serve::bind(SocketAddr::new(ip, port), false) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && self.https_port.is_none() => {
                info!(port, "API server port in use; selecting a free port");
                serve::bind(SocketAddr::new(ip, 0), false).map_err(|error| self.unbound(0, error))
            }
            listener => listener.map_err(|error| self.unbound(port, error)),
        }
    }

    /// With a node, all addresses of the IP versions of pods.
    fn default_bind_address(&self, cluster_network: &ClusterNetwork) -> IpAddr {
        let pods = &cluster_network.cluster_cidr;
        match (self.no_node, is_four(pods.primary())) {
            (true, true) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            (true, false) => IpAddr::V6(Ipv6Addr::LOCALHOST),
            (false, _) => any_address(pods),
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

/// The unspecified address of all IP versions that pods have.
pub(super) fn any_address(pods: &Ranges) -> IpAddr {
    match pods.has_six() {
        // It stands for IPv4 too.
        true => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        false => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
    }
}

/// The addresses at which pods and other machines reach a listener on `bind`, one for each IP
/// version that pods have. A host without a route falls back to the pod bridge, which has the first
/// address of the pod range.
pub(crate) fn reachable_addresses(bind: IpAddr, cluster_network: &ClusterNetwork) -> Vec<IpAddr> {
    let of = |range: &IpNet| {
        let reachable = host::reachable_address(match is_four(range) {
            true => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            false => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        });
        let bridge =
            nth_address(range, 1).filter(|_| reachable.is_loopback() && bind.is_unspecified());
        bridge.unwrap_or(reachable)
    };

    let mut all: Vec<IpAddr> = cluster_network.cluster_cidr.all().iter().map(of).collect();
    if !bind.is_unspecified() && !bind.is_loopback() {
        all.retain(|address| address.is_ipv4() != bind.is_ipv4());
        all.insert(0, bind);
    }
    all
}

/// The addresses of the API server's serving certificate.
pub(super) fn certificate_addresses(
    bind: IpAddr,
    reachable: &[IpAddr],
    cluster_network: &ClusterNetwork,
) -> Vec<IpAddr> {
    let six = IpAddr::V6(Ipv6Addr::LOCALHOST);
    let six = cluster_network.cluster_cidr.has_six().then_some(six);
    let services = cluster_network.service_cidr.all().iter();

    [bind, IpAddr::V4(Ipv4Addr::LOCALHOST)]
        .into_iter()
        .chain(six)
        .chain(reachable.iter().copied())
        .chain(services.filter_map(|range| nth_address(range, 1)))
        .collect()
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
