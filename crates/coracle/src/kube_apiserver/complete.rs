//! Makes the configuration of the flags: fills in defaults, validates, and reports all errors
//! together.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use coracle_apiserver::admission::{AdmissionConfiguration, PluginFlags, TolerationSeconds};
use coracle_apiserver::bootstrap::Advertised;
use coracle_apiserver::serve::{CertificateFiles, NamedCertificate};
use coracle_apiserver::storage::Media;
use coracle_apiserver::webhook::Route;
use coracle_apiserver::{Config, RuntimeConfig};
use coracle_client::Journal;
use coracle_settings::Mistakes;
use ipnet::IpNet;

use super::access;
use super::options::{Options, PROTOBUF};
use crate::certificates::{self, CertificateError};
use crate::host;
use crate::storage::{EmbeddedSettings, EtcdSettings, Storage};

/// Validated options.
pub(super) struct Settings {
    pub(super) listen: SocketAddr,
    pub(super) storage: Storage,
    pub(super) config: Config,
    /// The self-signed certificate to generate, if no files are given.
    pub(super) own_certificate: Option<OwnCertificate>,
}

/// A self-signed certificate of the server.
pub(super) struct OwnCertificate {
    pub(super) files: CertificateFiles,
    pub(super) addresses: Vec<IpAddr>,
    pub(super) names: Vec<String>,
}

impl OwnCertificate {
    /// Generates it unless it exists.
    pub(super) fn ensure(&self) -> Result<(), CertificateError> {
        certificates::ensure_self_signed(&self.files, &self.addresses, &self.names)
    }
}

/// Default of concurrent streams of an HTTP/2 connection.
const HTTP2_STREAMS: u32 = 100;

pub(super) fn complete(options: &Options) -> Result<Settings, Mistakes> {
    let mut mistakes = Vec::new();
    let bind = options
        .serving
        .bind_address
        .unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    let port = port(options, &mut mistakes);
    let advertise = advertise_address(options, bind);
    let service_cidrs = service_cidrs(options, advertise, &mut mistakes);

    let tls_limits = options.serving.limits(&mut mistakes);
    let streams = http2_streams(options, &mut mistakes);
    let browsers = super::browsers::complete(options, &mut mistakes);
    let node_port = node_port(options, &mut mistakes);
    let own_certificate = own_certificate(options, bind, advertise, &service_cidrs, &mut mistakes);
    let access = access::complete(
        &options.access,
        SocketAddr::new(advertise, port),
        &mut mistakes,
    );

    let admission = PluginFlags {
        enable: options.enable_admission_plugins.clone(),
        disable: options.disable_admission_plugins.clone(),
    };
    mistakes.extend(admission.errors());

    let AdmissionConfiguration {
        credentials: webhook_credentials,
        plugins: plugin_configurations,
    } = plugins(options, &admission, &mut mistakes);

    let proxy_client_certificate = proxy_client_certificate(options, &mut mistakes);

    let storage = storage(options, &mut mistakes);

    let min_request_timeout = check_requests(options, &mut mistakes);
    let kubelets = super::kubelets::complete(options, &mut mistakes);

    let runtime_config = runtime_config(options, &mut mistakes);

    if !mistakes.is_empty() {
        return Err(Mistakes(mistakes));
    }

    let certificate = match (
        &own_certificate,
        &options.serving.tls_cert_file,
        &options.serving.tls_private_key_file,
    ) {
        (None, Some(certificate), Some(key)) => CertificateFiles {
            certificate: certificate.clone(),
            key: key.clone(),
        },
        (own, ..) => own
            .as_ref()
            .map(|own| own.files.clone())
            .expect("files are given, or our own"),
    };

    Ok(Settings {
        listen: SocketAddr::new(bind, port),
        config: Config {
            journal: Journal::new(),
            flags: Vec::new(),
            certificate,
            named_certificates: named_certificates(options),
            tls_limits,
            http2: !options.serving.disable_http2,
            http2_streams: streams,
            goaway_chance: options.goaway_chance,
            browsers,
            client_authorities: options.access.client_ca_file.clone(),
            front_proxy: access.front_proxy,
            tokens: access.tokens,
            authorization: access.authorization,
            anonymous: access.anonymous,
            runtime_config,
            shared_store: storage.is_shared(),
            publishes_endpoints: options.endpoint_reconciler_type != "none",
            compaction: storage.compaction(),
            admission,
            plugin_configurations,
            webhook_credentials,
            webhook_route: match options.enable_aggregator_routing {
                true => Route::Endpoints,
                false => Route::ClusterIp,
            },
            proxy_client_certificate,
            allow_privileged: options.allow_privileged,
            request_timeout: options.request_timeout,
            bootstrap: true,
            min_request_timeout: std::time::Duration::from_secs(min_request_timeout),
            shutdown_delay: options.shutdown_delay,
            event_ttl: options.event_ttl,
            advertised: Advertised {
                address: advertise,
                port,
                service_cidrs,
                node_port,
            },
            node_ports: options.service_node_port_range.0.clone(),
            kubelets,
        },
        own_certificate,
        storage,
    })
}

/// Checks the limits of requests; returns the shortest time of a watch in seconds.
fn check_requests(options: &Options, mistakes: &mut Vec<String>) -> u64 {
    if !(0.0..=0.02).contains(&options.goaway_chance) {
        mistakes.push("--goaway-chance can not be less than 0 or greater than 0.02".to_owned());
    }
    if !matches!(options.endpoint_reconciler_type.as_str(), "lease" | "none") {
        mistakes.push(format!(
            "--endpoint-reconciler-type {:?} is not supported: must be lease or none",
            options.endpoint_reconciler_type
        ));
    }
    if options.request_timeout.is_zero() {
        mistakes.push("--request-timeout can not be negative value".to_string());
    }

    u64::try_from(options.min_request_timeout).unwrap_or_else(|_| {
        mistakes.push("--min-request-timeout can not be negative value".to_string());
        0
    })
}

/// Which built-in APIs are served.
fn runtime_config(options: &Options, mistakes: &mut Vec<String>) -> RuntimeConfig {
    let config = RuntimeConfig(options.runtime_config.0.clone());
    if let Err(error) = config.served() {
        mistakes.push(error.to_string());
    }
    config
}

/// What the server shows to aggregated servers.
fn proxy_client_certificate(
    options: &Options,
    mistakes: &mut Vec<String>,
) -> Option<(PathBuf, PathBuf)> {
    match (
        &options.proxy_client_cert_file,
        &options.proxy_client_key_file,
    ) {
        (Some(certificate), Some(key)) => Some((certificate.clone(), key.clone())),
        (None, None) => None,
        _ => {
            mistakes.push(
                "--proxy-client-cert-file and --proxy-client-key-file must be specified together"
                    .to_string(),
            );
            None
        }
    }
}

/// What configures admission plugins: a file, and flags.
fn plugins(
    options: &Options,
    admission: &PluginFlags,
    mistakes: &mut Vec<String>,
) -> AdmissionConfiguration {
    let mut read = match &options.admission_control_config_file {
        None => AdmissionConfiguration::default(),
        Some(file) => AdmissionConfiguration::read(file).unwrap_or_else(|error| {
            mistakes.push(format!("--admission-control-config-file: {error}"));
            AdmissionConfiguration::default()
        }),
    };

    mistakes.extend(read.plugins.errors(admission));
    read.plugins.toleration_seconds = TolerationSeconds {
        not_ready: options.default_not_ready_toleration_seconds,
        unreachable: options.default_unreachable_toleration_seconds,
    };

    read
}

fn storage(options: &Options, mistakes: &mut Vec<String>) -> Storage {
    if !matches!(options.storage_backend.as_str(), "" | "etcd3") {
        mistakes.push(format!(
            "--storage-backend invalid, allowed values: etcd3. If not specified, it will default to 'etcd3': {:?}",
            options.storage_backend
        ));
    }

    let media = match options.storage_media_type.as_str() {
        PROTOBUF => Media::Protobuf,
        "application/json" => Media::Json,
        other => {
            mistakes.push(format!(
                "--storage-media-type {other:?} invalid, allowed values: application/json, {PROTOBUF}"
            ));
            Media::Json
        }
    };

    let identity = match (&options.etcd_certfile, &options.etcd_keyfile) {
        (Some(certificate), Some(key)) => Some((certificate.clone(), key.clone())),
        (None, None) => None,
        _ => {
            mistakes
                .push("--etcd-certfile and --etcd-keyfile must be specified together".to_string());
            None
        }
    };

    match (&options.data_dir, options.etcd_servers.is_empty()) {
        (Some(_), false) => {
            mistakes.push("--data-dir and --etcd-servers are mutually exclusive".to_string())
        }
        (None, true) => mistakes.push(
            "--etcd-servers must be specified, or --data-dir for the embedded store".to_string(),
        ),
        (Some(folder), true) => {
            let node_lease_delay =
                Some(options.node_lease_write_delay).filter(|delay| !delay.is_zero());
            return Storage::Embedded(EmbeddedSettings {
                data_dir: folder.clone(),
                node_lease_delay,
            });
        }
        (None, false) => {}
    }

    Storage::Etcd(EtcdSettings {
        servers: options.etcd_servers.clone(),
        authority: options.etcd_cafile.clone(),
        identity,
        prefix: options.etcd_prefix.clone(),
        media,
        compaction: Some(options.etcd_compaction_interval).filter(|interval| !interval.is_zero()),
    })
}

fn port(options: &Options, mistakes: &mut Vec<String>) -> u16 {
    let given = options.serving.secure_port;
    u16::try_from(given).ok().filter(|port| *port > 0).unwrap_or_else(|| {
        mistakes.push(format!(
            "--secure-port {given} must be between 1 and 65535, inclusive. It cannot be turned off with 0"
        ));
        0
    })
}

fn advertise_address(options: &Options, bind: IpAddr) -> IpAddr {
    let given = options
        .advertise_address
        .filter(|address| !address.is_unspecified());
    given.unwrap_or_else(|| host::reachable_address(bind))
}

fn service_cidrs(options: &Options, advertise: IpAddr, mistakes: &mut Vec<String>) -> Vec<IpNet> {
    let given = &options.service_cluster_ip_range;
    if given.is_empty() {
        return vec!["10.0.0.0/24".parse().expect("it is a range")];
    }

    let mut ranges = Vec::new();
    for text in given {
        match text.parse::<IpNet>() {
            Ok(range) => ranges.push(range.trunc()),
            Err(_) => mistakes.push(format!(
                "--service-cluster-ip-range is not a valid CIDR: {text}"
            )),
        }
    }

    if given.len() > 2 {
        mistakes.push("--service-cluster-ip-range must not hold more than two values".to_string());
    }

    if let [first, second, ..] = ranges[..]
        && first.addr().is_ipv4() == second.addr().is_ipv4()
    {
        mistakes.push(
            "--service-cluster-ip-range[0] and --service-cluster-ip-range[1] must be of different IP family"
                .to_string(),
        );
    }

    for range in &ranges {
        if range.max_prefix_len() - range.prefix_len() < 3 {
            mistakes.push(format!(
                "specified --service-cluster-ip-range {range} is too small; for it to be useful it must hold at least \
                 8 addresses"
            ));
        }
    }

    if let Some(first) = ranges.first()
        && first.addr().is_ipv4() != advertise.is_ipv4()
    {
        mistakes.push(format!(
            "service IP family {first:?} must match public address family {:?}",
            advertise.to_string()
        ));
    }

    ranges
}

fn named_certificates(options: &Options) -> Vec<NamedCertificate> {
    let given = options.serving.tls_sni_cert_key.0.iter();
    let named = given.map(|named| NamedCertificate {
        files: CertificateFiles {
            certificate: named.certificate.clone(),
            key: named.key.clone(),
        },
        names: named.names.clone(),
    });
    named.collect()
}

fn http2_streams(options: &Options, mistakes: &mut Vec<String>) -> u32 {
    match u32::try_from(options.serving.http2_max_streams) {
        Ok(0) => HTTP2_STREAMS,
        Ok(streams) => streams,
        Err(_) => {
            mistakes
                .push("--http2-max-streams-per-connection can not be negative value".to_string());
            0
        }
    }
}

fn node_port(options: &Options, mistakes: &mut Vec<String>) -> u16 {
    let given = options.kubernetes_service_node_port;
    let range = &options.service_node_port_range.0;

    let port = u16::try_from(given).unwrap_or_default();
    if given != 0 && !range.contains(&port) {
        mistakes.push(format!(
            "--kubernetes-service-node-port {given} must be between {} and {}, inclusive. If 0, the Kubernetes \
             master service will be of type ClusterIP",
            range.start(),
            range.end()
        ));
    }

    port
}

/// The self-signed certificate to use; `None`: files are given.
fn own_certificate(
    options: &Options,
    bind: IpAddr,
    advertise: IpAddr,
    service_cidrs: &[IpNet],
    mistakes: &mut Vec<String>,
) -> Option<OwnCertificate> {
    match (
        &options.serving.tls_cert_file,
        &options.serving.tls_private_key_file,
    ) {
        (Some(_), Some(_)) => return None,
        (None, None) => {}
        (Some(_), None) | (None, Some(_)) => {
            mistakes.push(
                "--tls-cert-file and --tls-private-key-file must be specified together".to_string(),
            );
            return None;
        }
    }

    let Some(folder) = &options.serving.cert_dir else {
        mistakes.push("--cert-dir must not be empty without --tls-cert-file".to_string());
        return None;
    };

    let files = CertificateFiles {
        certificate: folder.join("apiserver.crt"),
        key: folder.join("apiserver.key"),
    };

    let mut names: Vec<String> = ["kubernetes.default.svc", "kubernetes.default", "kubernetes"]
        .map(str::to_string)
        .into();
    let mut addresses = vec![advertise];
    addresses.extend(service_cidrs.first().and_then(|range| range.hosts().next()));

    if bind.is_unspecified() {
        names.push("localhost".to_string());
    } else {
        addresses.push(bind);
    }

    addresses.dedup();

    Some(OwnCertificate {
        files,
        addresses,
        names,
    })
}
