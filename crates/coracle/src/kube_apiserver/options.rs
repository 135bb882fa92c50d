//! The parsed flags. [`complete`](super::complete) validates them.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use coracle_apiserver::registry::NodePorts;

use super::access::AccessOptions;

/// The default encoding of stored objects.
pub(super) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// The parsed flags.
pub(super) struct Options {
    pub(super) bind_address: Option<IpAddr>,
    pub(super) secure_port: i64,
    pub(super) cert_dir: Option<PathBuf>,
    pub(super) tls_cert_file: Option<PathBuf>,
    pub(super) tls_private_key_file: Option<PathBuf>,
    pub(super) tls_min_version: String,
    pub(super) disable_http2_serving: bool,
    pub(super) http2_max_streams: i64,
    pub(super) advertise_address: Option<IpAddr>,
    pub(super) request_timeout: Duration,
    pub(super) min_request_timeout: i64,
    pub(super) shutdown_delay: Duration,
    pub(super) event_ttl: Duration,
    pub(super) access: AccessOptions,
    pub(super) service_cluster_ip_range: Vec<String>,
    pub(super) service_node_port_range: RangeInclusive<u16>,
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
    pub(super) verbosity: i64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            bind_address: None,
            secure_port: 6443,
            cert_dir: Some(PathBuf::from("/var/run/kubernetes")),
            tls_cert_file: None,
            tls_private_key_file: None,
            tls_min_version: String::new(),
            disable_http2_serving: false,
            http2_max_streams: 0,
            advertise_address: None,
            request_timeout: Duration::from_secs(60),
            min_request_timeout: 1800,
            shutdown_delay: Duration::ZERO,
            event_ttl: Duration::from_secs(3600),
            access: AccessOptions::default(),
            service_cluster_ip_range: Vec::new(),
            service_node_port_range: NodePorts::USUAL,
            kubernetes_service_node_port: 0,
            allow_privileged: false,
            kubelet_certificate_authority: None,
            kubelet_client_certificate: None,
            kubelet_client_key: None,
            kubelet_timeout: Duration::from_secs(5),
            kubelet_preferred_address_types: Vec::new(),
            kubelet_port: 10250,
            enable_admission_plugins: Vec::new(),
            disable_admission_plugins: Vec::new(),
            data_dir: None,
            node_lease_write_delay: Duration::ZERO,
            etcd_servers: Vec::new(),
            etcd_cafile: None,
            etcd_certfile: None,
            etcd_keyfile: None,
            etcd_prefix: "/registry".to_string(),
            etcd_compaction_interval: Duration::from_secs(300),
            storage_backend: String::new(),
            storage_media_type: PROTOBUF.to_string(),
            verbosity: 0,
        }
    }
}
