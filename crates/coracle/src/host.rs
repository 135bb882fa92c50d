//! Address and name of the host.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};

/// An address at which others reach a listener on `bind`: `bind` itself, or, if it is unspecified
/// or loopback, the address of the interface with the default route.
pub(crate) fn reachable_address(bind: IpAddr) -> IpAddr {
    if !bind.is_unspecified() && !bind.is_loopback() {
        return bind;
    }

    let (any, somewhere) = match bind {
        IpAddr::V6(_) => ("[::]:0", "[2001:db8::1]:9"),
        IpAddr::V4(_) => ("0.0.0.0:0", "192.0.2.1:9"),
    };

    // Connecting a datagram socket sends nothing; it only selects a route.
    let routed = UdpSocket::bind(any).and_then(|socket| {
        socket.connect(somewhere)?;
        Ok(socket.local_addr()?.ip())
    });

    routed.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
}

/// The processors of the host, also those that this process may not use.
pub(crate) fn processors() -> usize {
    let listed = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let is_processor = |line: &&str| line.starts_with("processor");
    listed.lines().filter(is_processor).count().max(1)
}

/// The host's name.
pub(crate) fn name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_string()
}
