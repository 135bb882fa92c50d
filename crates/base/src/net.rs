//! Addresses, and what connecting to them failed with.

use std::io;

/// `host:port`, as URLs have it: an IPv6 address is in brackets.
pub fn authority(host: &str, port: u16) -> String {
    match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}

/// The text of Go's net package for what a socket operation failed with, which users know; none
/// for others than these.
pub fn go_text(error: &io::Error) -> Option<&'static str> {
    Some(match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused",
        io::ErrorKind::HostUnreachable => "no route to host",
        io::ErrorKind::NetworkUnreachable => "network is unreachable",
        io::ErrorKind::TimedOut => "connection timed out",
        io::ErrorKind::ConnectionReset => "connection reset by peer",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv6_addresses_are_in_brackets() {
        assert_eq!(authority("10.0.0.1", 80), "10.0.0.1:80");
        assert_eq!(authority("a.example", 443), "a.example:443");
        assert_eq!(authority("fd00::1", 80), "[fd00::1]:80");
    }
}
