//! Forwards other names to upstream servers, and caches their responses by TTL.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig};
use hickory_server::net::NetError;
use hickory_server::net::runtime::TokioRuntimeProvider;
use hickory_server::proto::op::ResponseCode;
use hickory_server::proto::rr::{Name, Record, RecordType};

/// The upstream servers.
pub struct Upstream {
    resolver: TokioResolver,
    servers: Vec<SocketAddr>,
}

/// Why upstream servers cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    #[error("cannot read {path}")]
    Unreadable {
        path: String,
        source: std::io::Error,
    },
    #[error("cannot set up the upstream resolver")]
    Unusable(#[source] NetError),
}

/// The response of upstream servers.
pub(super) struct UpstreamResponse {
    pub(super) code: ResponseCode,
    pub(super) answers: Vec<Record>,
    pub(super) authorities: Vec<Record>,
}

/// Cache size in responses.
const CACHE_SIZE: u64 = 10_000;

/// Timeouts per server and in total: clients give up after five seconds.
const SERVER_TIMEOUT: Duration = Duration::from_secs(2);
const TOTAL_TIMEOUT: Duration = Duration::from_millis(4500);

/// After this time without a response, the route to the servers is checked.
const ROUTE_CHECK_AFTER: Duration = Duration::from_millis(200);

impl Upstream {
    /// With these servers.
    pub fn of(servers: &[SocketAddr]) -> Result<Upstream, UpstreamError> {
        let server = |at: &SocketAddr| {
            let mut connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()];
            connections
                .iter_mut()
                .for_each(|connection| connection.port = at.port());
            NameServerConfig::new(at.ip(), true, connections.to_vec())
        };
        let config = ResolverConfig::from_name_servers(servers.iter().map(server).collect());
        let mut builder =
            TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());

        let options = builder.options_mut();
        options.cache_size = CACHE_SIZE;

        options.use_hosts_file = ResolveHosts::Never;
        options.preserve_intermediates = true;
        options.ndots = 0;
        options.timeout = SERVER_TIMEOUT;
        let resolver = builder.build().map_err(UpstreamError::Unusable)?;

        Ok(Upstream {
            resolver,
            servers: servers.to_vec(),
        })
    }

    /// With the name servers of a `resolv.conf`, except `own` addresses, which would loop.
    pub fn of_file(path: &Path, own: &[IpAddr]) -> Result<Option<Upstream>, UpstreamError> {
        let unreadable = |source| UpstreamError::Unreadable {
            path: path.display().to_string(),
            source,
        };
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        let servers = servers(&text, own);
        if servers.is_empty() {
            Ok(None)
        } else {
            Upstream::of(&servers).map(Some)
        }
    }

    pub(super) async fn lookup(&self, name: &Name, kind: RecordType) -> UpstreamResponse {
        let response = tokio::select! {
            response = self.resolver.lookup(name.clone(), kind) => response,
            why = self.wait_until_unreachable() => Err(NetError::from(why)),
        };

        match response {
            Ok(lookup) => UpstreamResponse {
                code: ResponseCode::NoError,
                answers: lookup.answers().to_vec(),
                authorities: Vec::new(),
            },
            Err(NetError::Dns(hickory_server::net::DnsError::NoRecordsFound(none))) => {
                UpstreamResponse {
                    code: none.response_code,
                    answers: Vec::new(),
                    authorities: none
                        .soa
                        .map(|soa| soa.into_record_of_rdata())
                        .into_iter()
                        .collect(),
                }
            }
            Err(error) => {
                tracing::debug!(%name, %kind, %error, "upstream query failed");
                UpstreamResponse {
                    code: ResponseCode::ServFail,
                    answers: Vec::new(),
                    authorities: Vec::new(),
                }
            }
        }
    }
}

impl Upstream {
    /// Returns the reason when no response can be expected any more.
    async fn wait_until_unreachable(&self) -> &'static str {
        tokio::time::sleep(ROUTE_CHECK_AFTER).await;
        if !self.servers.iter().any(has_route) {
            return "no route to any upstream server";
        }
        tokio::time::sleep(TOTAL_TIMEOUT.saturating_sub(ROUTE_CHECK_AFTER)).await;
        "upstream servers timed out"
    }
}

/// Whether there is a route to a server. Sends no packet.
fn has_route(server: &SocketAddr) -> bool {
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    UdpSocket::bind((any, 0))
        .and_then(|socket| socket.connect(server))
        .is_ok()
}

/// The `nameserver` lines of a `resolv.conf`.
fn servers(text: &str, own: &[IpAddr]) -> Vec<SocketAddr> {
    let named = |line: &str| {
        let mut words = line.split_whitespace();
        (words.next() == Some("nameserver")).then(|| words.next()?.parse::<IpAddr>().ok())?
    };
    let others = text
        .lines()
        .filter_map(named)
        .filter(|address| !is_own(*address, own));
    others.map(|address| SocketAddr::new(address, 53)).collect()
}

/// Whether asking an address would be asking ourselves. On all addresses means on loopback too.
fn is_own(address: IpAddr, own: &[IpAddr]) -> bool {
    own.contains(&address) || (address.is_loopback() && own.iter().any(IpAddr::is_unspecified))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_addresses_are_not_used_as_upstream_servers() {
        let text = "# nameserver 1.1.1.1\nsearch a b\nnameserver 10.0.0.10\nnameserver  192.0.2.1 \nnameserver x\n\
                    options ndots:2\nnameserver fd00::1\n";
        let found = servers(text, &["10.0.0.10".parse().unwrap()]);
        let loopback = "nameserver 127.0.0.53\nnameserver ::1\n";
        assert_eq!(servers(loopback, &["0.0.0.0".parse().unwrap()]), []);
        assert_eq!(servers(loopback, &["10.0.0.10".parse().unwrap()]).len(), 2);
        assert_eq!(
            found,
            [
                "192.0.2.1:53".parse().unwrap(),
                "[fd00::1]:53".parse().unwrap()
            ]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_query_is_answered_before_the_client_gives_up() {
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        let upstream = Upstream::of(&[silent.local_addr().unwrap()]).unwrap();
        let began = tokio::time::Instant::now();

        let response = upstream
            .lookup(&"example.org.".parse().unwrap(), RecordType::A)
            .await;
        assert_eq!(response.code, ResponseCode::ServFail);
        assert!(
            began.elapsed() < Duration::from_secs(5),
            "{:?}",
            began.elapsed()
        );
    }

    #[test]
    fn a_server_without_a_route_is_detected() {
        assert!(has_route(&"127.0.0.1:53".parse().unwrap()));
        // A link-local address without a scope has no route.
        assert!(!has_route(&"[fe80::1]:53".parse().unwrap()));
    }
}
