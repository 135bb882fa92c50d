//! What the host knows of itself.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};

/// An address at which others reach what listens on `bind`: that itself, or, where it is every
/// address or one that only this host can reach, that of the interface which leads out of the host.
pub(crate) fn reachable_address(bind: IpAddr) -> IpAddr {
    if !bind.is_unspecified() && !bind.is_loopback() {
        return bind;
    }

    let (any, somewhere) = match bind {
        IpAddr::V6(_) => ("[::]:0", "[2001:db8::1]:9"),
        IpAddr::V4(_) => ("0.0.0.0:0", "192.0.2.1:9"),
    };

    // Nothing is sent: connecting a datagram socket only chooses a route.
    let routed = UdpSocket::bind(any).and_then(|socket| {
        socket.connect(somewhere)?;
        Ok(socket.local_addr()?.ip())
    });

    routed.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
}

/// The host's name.
pub(crate) fn name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_string()
}
