//! Parses and validates a KubeProxyConfiguration.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use coracle_api::Value;
use coracle_api::codec::yaml;
use coracle_api::time::parse_duration;
use coracle_api::typed::from_tree;
use ipnet::IpNet;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{Config, ConfigError, DetectLocal, File, SYNC_PERIOD};
use crate::compile::NodePortAddresses;

pub(super) fn read(text: &[u8]) -> Result<File, ConfigError> {
    let one = |message: String| ConfigError(vec![message]);
    let (tree, duplicates) = yaml::decode_strict(text).map_err(|error| one(error.to_string()))?;
    if let Some(duplicates) = duplicates {
        return Err(one(duplicates.to_string()));
    }

    let value = |name| tree.get(name).and_then(Value::as_str).unwrap_or_default();
    if (value("apiVersion"), value("kind")) != (VERSION, KIND) {
        let (version, kind) = (value("apiVersion"), value("kind"));
        return Err(one(format!(
            "no kind \"{kind}\" is registered for version \"{version}\": want {KIND} of {VERSION}"
        )));
    }

    let file: KubeProxyConfiguration = from_tree(&tree).map_err(|error| one(error.to_string()))?;
    let mut validator = Validator { errors: Vec::new() };
    let config = validator.config(&file);
    let kubeconfig = file
        .client_connection
        .and_then(|client| client.kubeconfig)
        .unwrap_or_default();

    if validator.errors.is_empty() {
        Ok(File { config, kubeconfig })
    } else {
        Err(ConfigError(validator.errors))
    }
}

const VERSION: &str = "kubeproxy.config.k8s.io/v1alpha1";
const KIND: &str = "KubeProxyConfiguration";

/// Collects validation errors.
struct Validator {
    errors: Vec<String>,
}

impl Validator {
    fn config(&mut self, file: &KubeProxyConfiguration) -> Config {
        let default = Config::default();
        self.mode(text(file.mode.as_ref()));
        let rules = file.nftables.as_ref();
        let every = self.duration(
            "SyncPeriod",
            rules.and_then(|rules| rules.sync_period.as_ref()),
        );

        let least = self.duration(
            "MinSyncPeriod",
            rules.and_then(|rules| rules.min_sync_period.as_ref()),
        );

        let (every, least) = (
            every.unwrap_or(SYNC_PERIOD),
            least.unwrap_or(default.min_sync_period),
        );

        if least > every {
            self.invalid(
                "SyncPeriod",
                &format!("{every:?}"),
                "must be greater than or equal to KubeProxyConfiguration.MinSyncPeriod",
            );
        }

        let bit = rules.and_then(|rules| rules.masquerade_bit).unwrap_or(14);
        let masquerade_bit = u32::try_from(bit)
            .ok()
            .filter(|bit| *bit <= 31)
            .unwrap_or_else(|| {
                let why = "must be within the range [0, 31]";
                self.invalid(
                    "KubeProxyNFTablesConfiguration.MasqueradeBit",
                    &bit.to_string(),
                    why,
                );
                default.masquerade_bit
            });

        Config {
            node: text(file.hostname_override.as_ref()).trim().to_lowercase(),
            node_port_addresses: self
                .node_ports(file.node_port_addresses.as_deref().unwrap_or_default()),
            detect_local: self.detect_local(file),
            min_sync_period: least,
            health_timeout: 2 * every,
            masquerade_bit,
            masquerade_all: rules
                .and_then(|rules| rules.masquerade_all)
                .unwrap_or(false),
            healthz: self.healthz(file),
            bind_hard_fail: file.bind_address_hard_fail.unwrap_or(false),
            ..default
        }
    }

    fn mode(&mut self, mode: &str) {
        match mode {
            "" | "nftables" => {}
            "iptables" | "ipvs" => self.invalid("ProxyMode", mode, "only nftables is supported"),
            _ => self.invalid(
                "ProxyMode",
                mode,
                "must be iptables, ipvs, nftables or blank",
            ),
        }
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
                    self.invalid(&path, range, "can't use both 'primary' and CIDRs")
                }
                Ok(range) => ranges.push(range),
                Err(_) => self.invalid(&path, range, "must be a valid CIDR"),
            }
        }

        NodePortAddresses::Ranges(ranges)
    }

    fn detect_local(&mut self, file: &KubeProxyConfiguration) -> DetectLocal {
        let named = |of: fn(&DetectLocalConfiguration) -> Option<&String>| {
            text(file.detect_local.as_ref().and_then(of)).to_owned()
        };
        match text(file.detect_local_mode.as_ref()) {
            "" | "ClusterCIDR" => {
                DetectLocal::ClusterRanges(self.ranges(text(file.cluster_cidr.as_ref())))
            }
            "NodeCIDR" => DetectLocal::NodeRanges,
            "BridgeInterface" => {
                let name = named(|detect| detect.bridge_interface.as_ref());
                DetectLocal::Bridge(self.interface("BridgeInterface", name))
            }
            "InterfaceNamePrefix" => {
                let prefix = named(|detect| detect.interface_name_prefix.as_ref());
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

    /// The name is used in nftables rules, so it must be a valid interface name.
    fn interface(&mut self, field: &str, name: String) -> String {
        let path = format!("DetectLocalConfiguration.{field}");
        let good =
            |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'/' | b'*' | b'\\');
        if name.is_empty() {
            self.invalid(&path, &name, "must not be empty");
        } else if name.len() > 15 || !name.bytes().all(good) {
            self.invalid(&path, &name, "must be the name of an interface");
        }
        name
    }

    fn ranges(&mut self, listed: &str) -> Vec<IpNet> {
        let mut ranges = Vec::new();
        for range in listed
            .split(',')
            .map(str::trim)
            .filter(|range| !range.is_empty())
        {
            match range.parse() {
                Ok(range) => ranges.push(range),
                Err(_) => self.invalid(
                    "ClusterCIDR",
                    range,
                    "must be a valid CIDR block (e.g. 10.100.0.0/16 or fde4:8dba:82e1::/48)",
                ),
            }
        }

        ranges
    }

    /// The default is the bind address with the default port; an empty value disables it.
    fn healthz(&mut self, file: &KubeProxyConfiguration) -> Option<SocketAddr> {
        let bind = text(file.bind_address.as_ref());
        let bind: Option<IpAddr> = match bind.parse() {
            _ if bind.is_empty() => None,
            Ok(bind) => Some(bind),
            Err(_) => {
                self.invalid(
                    "BindAddress",
                    bind,
                    "not a valid textual representation of an IP address",
                );
                None
            }
        };

        let Some(value) = &file.healthz_bind_address else {
            let default = Config::default().healthz?;
            return Some(SocketAddr::new(
                bind.unwrap_or(default.ip()),
                default.port(),
            ));
        };

        if value.is_empty() {
            return None;
        }

        let address = value
            .parse()
            .ok()
            .filter(|address: &SocketAddr| address.port() != 0);

        if address.is_none() {
            self.invalid("HealthzBindAddress", value, "must be IP:port");
        }

        address
    }

    fn duration(&mut self, field: &str, value: Option<&String>) -> Option<Duration> {
        let value = value.filter(|value| !matches!(value.as_str(), "" | "0" | "0s"))?;
        let read = parse_duration(value)
            .ok()
            .and_then(coracle_api::time::Duration::to_std);
        if read.is_none() {
            self.invalid(field, value, "must be greater than 0");
        }
        read
    }

    fn invalid(&mut self, path: &str, value: &str, why: &str) {
        self.errors.push(format!(
            "KubeProxyConfiguration.{path}: Invalid value: \"{value}\": {why}"
        ));
    }
}

/// Stands for the node's primary addresses.
const PRIMARY: &str = "primary";

fn text(value: Option<&String>) -> &str {
    value.map(String::as_str).unwrap_or_default()
}

/// Fields with a leading underscore are accepted and ignored: conntrack settings are the machine's,
/// other modes are not supported, and there is no periodic resync.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct KubeProxyConfiguration {
    #[serde(rename = "apiVersion")]
    _api_version: String,
    #[serde(rename = "kind")]
    _kind: String,
    bind_address: Option<String>,
    bind_address_hard_fail: Option<bool>,
    client_connection: Option<ClientConnectionConfiguration>,
    #[serde(rename = "clusterCIDR")]
    cluster_cidr: Option<String>,
    #[serde(rename = "configSyncPeriod")]
    _config_sync_period: Option<String>,
    #[serde(rename = "conntrack")]
    _conntrack: Option<IgnoredAny>,
    detect_local: Option<DetectLocalConfiguration>,
    detect_local_mode: Option<String>,
    #[serde(rename = "enableProfiling")]
    _enable_profiling: Option<bool>,
    #[serde(rename = "featureGates")]
    _feature_gates: Option<IgnoredAny>,
    healthz_bind_address: Option<String>,
    hostname_override: Option<String>,
    #[serde(rename = "iptables")]
    _iptables: Option<IgnoredAny>,
    #[serde(rename = "ipvs")]
    _ipvs: Option<IgnoredAny>,
    #[serde(rename = "logging")]
    _logging: Option<IgnoredAny>,
    #[serde(rename = "metricsBindAddress")]
    _metrics_bind_address: Option<String>,
    mode: Option<String>,
    nftables: Option<NftablesConfiguration>,
    node_port_addresses: Option<Vec<String>>,
    #[serde(rename = "oomScoreAdj")]
    _oom_score_adj: Option<i64>,
    #[serde(rename = "portRange")]
    _port_range: Option<String>,
    #[serde(rename = "showHiddenMetricsForVersion")]
    _show_hidden_metrics_for_version: Option<String>,
    #[serde(rename = "windowsRunAsService")]
    _windows_run_as_service: Option<bool>,
    #[serde(rename = "winkernel")]
    _winkernel: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct NftablesConfiguration {
    masquerade_all: Option<bool>,
    masquerade_bit: Option<i64>,
    min_sync_period: Option<String>,
    sync_period: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct DetectLocalConfiguration {
    bridge_interface: Option<String>,
    interface_name_prefix: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ClientConnectionConfiguration {
    kubeconfig: Option<String>,
    #[serde(rename = "acceptContentTypes")]
    _accept_content_types: Option<String>,
    #[serde(rename = "contentType")]
    _content_type: Option<String>,
    #[serde(rename = "qps")]
    _qps: Option<f64>,
    #[serde(rename = "burst")]
    _burst: Option<i64>,
}
