//! What the settings set. [`complete`](super::complete) validates them.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use coracle_settings::{Pairs, Part, PortRange};

use super::access::AccessOptions;
use crate::settings::{Gates, Logs, Serving};

/// The default encoding of stored objects.
pub(super) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// What the settings set.
#[derive(Default)]
pub(super) struct Options {
    pub(super) serving: Serving,
    pub(super) advertise_address: Option<IpAddr>,
    pub(super) request_timeout: Duration,
    pub(super) min_request_timeout: i64,
    pub(super) cors_allowed_origins: Vec<String>,
    pub(super) transport_directives: Vec<String>,
    pub(super) goaway_chance: f64,
    pub(super) endpoint_reconciler_type: String,
    pub(super) shutdown_delay: Duration,
    pub(super) event_ttl: Duration,
    pub(super) access: AccessOptions,
    pub(super) service_cluster_ip_range: Vec<String>,
    pub(super) service_node_port_range: PortRange,
    pub(super) kubernetes_service_node_port: i64,
    pub(super) allow_privileged: bool,
    pub(super) kubelet_certificate_authority: Option<PathBuf>,
    pub(super) kubelet_client_certificate: Option<PathBuf>,
    pub(super) kubelet_client_key: Option<PathBuf>,
    pub(super) kubelet_timeout: Duration,
    pub(super) kubelet_preferred_address_types: Vec<String>,
    pub(super) kubelet_port: i64,
    pub(super) enable_admission_plugins: Vec<String>,
    pub(super) disable_admission_plugins: Vec<String>,
    pub(super) admission_control_config_file: Option<PathBuf>,
    pub(super) default_not_ready_toleration_seconds: i64,
    pub(super) default_unreachable_toleration_seconds: i64,
    pub(super) enable_aggregator_routing: bool,
    pub(super) proxy_client_cert_file: Option<PathBuf>,
    pub(super) proxy_client_key_file: Option<PathBuf>,
    pub(super) controllers: Vec<String>,
    pub(super) data_dir: Option<PathBuf>,
    pub(super) node_lease_write_delay: Duration,
    pub(super) etcd_servers: Vec<String>,
    pub(super) etcd_cafile: Option<PathBuf>,
    pub(super) etcd_certfile: Option<PathBuf>,
    pub(super) etcd_keyfile: Option<PathBuf>,
    pub(super) etcd_prefix: String,
    pub(super) etcd_compaction_interval: Duration,
    pub(super) storage_backend: String,
    pub(super) storage_media_type: String,
    pub(super) logs: Logs,
    pub(super) feature_gates: Gates,
    pub(super) runtime_config: Pairs,
}

impl Part<Serving> for Options {
    fn part(&mut self) -> &mut Serving {
        &mut self.serving
    }
}

impl Part<Gates> for Options {
    fn part(&mut self) -> &mut Gates {
        &mut self.feature_gates
    }
}

impl Part<Pairs> for Options {
    fn part(&mut self) -> &mut Pairs {
        &mut self.runtime_config
    }
}

impl Part<Logs> for Options {
    fn part(&mut self) -> &mut Logs {
        &mut self.logs
    }
}
