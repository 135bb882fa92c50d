//! The options of the proxy, and their validation.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use coracle_proxy::compile::NodePortAddresses;
use coracle_proxy::{Config, Conntrack, DetectLocal};
use coracle_settings::{Mistakes, Part};
use ipnet::IpNet;

use crate::host;
use crate::settings::{ApiClient, Gates, Logs};

/// What the settings set.
#[derive(Default)]
pub(super) struct Options {
    pub(super) config: Option<PathBuf>,
    pub(super) api: ApiClient,
    pub(super) logs: Logs,
    pub(super) feature_gates: Gates,
    pub(super) cleanup: bool,
    pub(super) hostname_override: String,
    pub(super) mode: String,
    pub(super) detect_local_mode: String,
    pub(super) cluster_cidrs: Vec<IpNet>,
    pub(super) bridge: String,
    pub(super) interface_prefix: String,
    pub(super) node_port_addresses: Vec<String>,
    pub(super) masquerade_all: bool,
    pub(super) masquerade_bit: i32,
    pub(super) sync_period: Duration,
    pub(super) min_sync_period: Duration,
    pub(super) bind_address: Option<IpAddr>,
    pub(super) bind_hard_fail: bool,
    pub(super) healthz_address: String,
    pub(super) healthz_port: i32,
    pub(super) metrics_address: String,
    pub(super) metrics_port: i32,
    pub(super) oom_score_adj: i32,
    pub(super) conntrack: ConntrackOptions,
    pub(super) init_only: bool,
    pub(super) write_config_to: Option<PathBuf>,
}

/// Settings of connection tracking.
#[derive(Default)]
pub(super) struct ConntrackOptions {
    pub(super) max_per_core: i32,
    pub(super) min: i32,
    pub(super) tcp_established_timeout: Duration,
    pub(super) tcp_close_wait_timeout: Duration,
    pub(super) tcp_be_liberal: bool,
    pub(super) udp_timeout: Duration,
    pub(super) udp_stream_timeout: Duration,
}

impl Part<ApiClient> for Options {
    fn part(&mut self) -> &mut ApiClient {
        &mut self.api
    }
}

impl Part<Gates> for Options {
    fn part(&mut self) -> &mut Gates {
        &mut self.feature_gates
    }
}

impl Part<Logs> for Options {
    fn part(&mut self) -> &mut Logs {
        &mut self.logs
    }
}

impl Options {
    /// The configuration of the proxy; reports all errors together.
    pub(super) fn complete(&self) -> Result<Config, Mistakes> {
        let mut validator = Validator { errors: Vec::new() };
        validator.mode(&self.mode);
        if self.min_sync_period > self.sync_period || self.sync_period.is_zero() {
            validator.invalid(
                "SyncPeriod",
                &format!("{:?}", self.sync_period),
                "must be greater than 0 and not less than KubeProxyConfiguration.MinSyncPeriod",
            );
        }

        validator.conntrack(&self.conntrack);
        if !(-1000..=1000).contains(&self.oom_score_adj) {
            let value = self.oom_score_adj.to_string();
            validator.invalid(
                "OOMScoreAdj",
                &value,
                "must be within the range [-1000, 1000]",
            );
        }

        let node = match self.hostname_override.trim() {
            "" => host::name().to_lowercase(),
            name => name.to_lowercase(),
        };

        let config = Config {
            node,
            node_port_addresses: validator.node_ports(&self.node_port_addresses),
            detect_local: validator.detect_local(self),
            min_sync_period: self.min_sync_period,
            health_timeout: 2 * self.sync_period,
            masquerade_bit: validator.masquerade_bit(self.masquerade_bit),
            masquerade_all: self.masquerade_all,
            healthz: validator.healthz(self),
            metrics: validator.address(
                "MetricsBindAddress",
                &self.metrics_address,
                self.metrics_port,
            ),
            bind_hard_fail: self.bind_hard_fail,
            ..Config::default()
        };

        if validator.errors.is_empty() {
            Ok(config)
        } else {
            Err(Mistakes(validator.errors))
        }
    }
}

impl ConntrackOptions {
    /// The settings; numbers that are not valid are 0.
    pub(super) fn complete(&self) -> Conntrack {
        let number = |number: i32| u64::try_from(number).unwrap_or_default();
        Conntrack {
            max_per_core: number(self.max_per_core),
            min: number(self.min),
            tcp_established_timeout: self.tcp_established_timeout,
            tcp_close_wait_timeout: self.tcp_close_wait_timeout,
            tcp_be_liberal: self.tcp_be_liberal,
            udp_timeout: self.udp_timeout,
            udp_stream_timeout: self.udp_stream_timeout,
        }
    }
}

/// Collects validation errors.
struct Validator {
    errors: Vec<String>,
}

impl Validator {
    fn mode(&mut self, mode: &str) {
        match mode {
            "" | "nftables" => {}
            "iptables" | "ipvs" => self.invalid("Mode", mode, "only nftables is supported"),
            _ => self.invalid("Mode", mode, "must be iptables, ipvs, nftables or blank"),
        }
    }

    fn conntrack(&mut self, options: &ConntrackOptions) {
        let numbers = [("MaxPerCore", options.max_per_core), ("Min", options.min)];
        for (field, number) in numbers.into_iter().filter(|(_, number)| *number < 0) {
            self.invalid(
                &format!("KubeProxyConntrackConfiguration.{field}"),
                &number.to_string(),
                "must be greater than or equal to 0",
            );
        }
    }

    fn masquerade_bit(&mut self, bit: i32) -> u32 {
        let valid = u32::try_from(bit).ok().filter(|bit| *bit <= 31);
        valid.unwrap_or_else(|| {
            self.invalid(
                "KubeProxyNFTablesConfiguration.MasqueradeBit",
                &bit.to_string(),
                "must be within the range [0, 31]",
            );
            0
        })
    }

    fn node_ports(&mut self, named: &[String]) -> NodePortAddresses {
        if named.is_empty() || (named.len() == 1 && named[0] == PRIMARY) {
            return NodePortAddresses::Primary;
        }

        let mut ranges = Vec::new();
        for (index, range) in named.iter().enumerate() {
            let path = format!("NodePortAddresses[{index}]");
            match range.parse::<IpNet>() {
                _ if range == PRIMARY => {
                    self.invalid(&path, range, "can't use both 'primary' and CIDRs");
                }
                Ok(range) => ranges.push(range),
                Err(_) => self.invalid(&path, range, "must be a valid CIDR"),
            }
        }

        NodePortAddresses::Ranges(ranges)
    }

    fn detect_local(&mut self, options: &Options) -> DetectLocal {
        match options.detect_local_mode.as_str() {
            "" | "ClusterCIDR" => DetectLocal::ClusterRanges(options.cluster_cidrs.clone()),
            "NodeCIDR" => DetectLocal::NodeRanges,
            "BridgeInterface" => {
                DetectLocal::Bridge(self.interface("BridgeInterface", &options.bridge))
            }
            "InterfaceNamePrefix" => {
                let prefix = &options.interface_prefix;
                DetectLocal::InterfacePrefix(self.interface("InterfaceNamePrefix", prefix))
            }
            other => {
                self.errors.push(format!(
                    "KubeProxyConfiguration.DetectLocalMode: Unsupported value: \"{other}\": supported values: \
                     \"BridgeInterface\", \"ClusterCIDR\", \"InterfaceNamePrefix\", \"NodeCIDR\""
                ));
                DetectLocal::NodeRanges
            }
        }
    }

    /// The name is inserted into rules, so it must be a valid interface name.
    fn interface(&mut self, field: &str, name: &str) -> String {
        let path = format!("DetectLocalConfiguration.{field}");
        let good = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@:".contains(&byte);
        if name.is_empty() {
            self.invalid(&path, name, "must not be empty");
        } else if name.len() > 15 || !name.bytes().all(good) {
            self.invalid(&path, name, "must be the name of an interface");
        }
        name.to_string()
    }

    /// The address of the health server; none if it is empty or the port is 0.
    fn healthz(&mut self, options: &Options) -> Option<SocketAddr> {
        let text = options.healthz_address.as_str();

        // As upstream's defaulting: the default is of the family of the bind address.
        let is_ipv6 = options
            .bind_address
            .is_some_and(|address| address.is_ipv6());
        let text = if text == HEALTHZ && is_ipv6 {
            HEALTHZ_IPV6
        } else {
            text
        };

        self.address("HealthzBindAddress", text, options.healthz_port)
    }

    /// An address that may lack its port; none if it is empty or the port is 0.
    fn address(&mut self, field: &str, text: &str, port: i32) -> Option<SocketAddr> {
        if text.is_empty() || port == 0 {
            return None;
        }

        let port = u16::try_from(port).ok();
        let address = text.parse().ok().or_else(|| {
            let address = text.trim_matches(['[', ']']).parse().ok()?;
            Some(SocketAddr::new(address, port?))
        });
        let address = address.filter(|address| address.port() != 0);

        if address.is_none() {
            self.invalid(field, text, "must be IP:port");
        }
        address
    }

    fn invalid(&mut self, path: &str, value: &str, why: &str) {
        self.errors.push(format!(
            "KubeProxyConfiguration.{path}: Invalid value: \"{value}\": {why}"
        ));
    }
}

/// Stands for the node's primary addresses.
const PRIMARY: &str = "primary";

/// The default address of the health server.
pub(super) const HEALTHZ: &str = "0.0.0.0:10256";
/// The default address of the metrics server.
pub(super) const METRICS_ADDRESS: &str = "127.0.0.1:10249";
const HEALTHZ_IPV6: &str = "[::]:10256";
