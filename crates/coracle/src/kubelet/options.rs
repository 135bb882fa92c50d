//! The options of the kubelet, and their validation.

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use coracle_api::quantity::Quantity;
use coracle_client::Journal;
use coracle_kubelet::server::Tls;
use coracle_kubelet::server::access::{AccessConfig, Authorities, KeptFor};
use coracle_kubelet::{Config, ImageSettings, LogRotation, Shown};
use coracle_settings::{Mistakes, Part};
use ipnet::IpNet;

use crate::host;
use crate::settings::{
    CniFlags, Gates, ImageFlags, Logs, TaintText, check_addresses, check_labels, subdomain,
};

/// What the settings set.
#[derive(Default)]
pub(super) struct Options {
    pub(super) config: Option<PathBuf>,
    pub(super) config_dir: Option<PathBuf>,
    pub(super) logs: Logs,
    pub(super) feature_gates: Gates,
    pub(super) kubeconfig: Option<PathBuf>,
    pub(super) bootstrap_kubeconfig: Option<PathBuf>,
    pub(super) cert_dir: PathBuf,
    pub(super) root_dir: PathBuf,
    pub(super) hostname_override: String,
    pub(super) node_ip: Vec<IpAddr>,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) cluster_cidrs: Vec<IpNet>,
    pub(super) cni: CniFlags,
    pub(super) address: Option<IpAddr>,
    pub(super) port: i32,
    pub(super) healthz_address: Option<IpAddr>,
    pub(super) healthz_port: i32,
    pub(super) qps: i32,
    pub(super) burst: i32,
    pub(super) rotate_certificates: bool,
    pub(super) server_tls_bootstrap: bool,
    pub(super) tls_cert_file: Option<PathBuf>,
    pub(super) tls_private_key_file: Option<PathBuf>,
    pub(super) tls_min_version: String,
    pub(super) anonymous: bool,
    pub(super) token_webhook: bool,
    pub(super) token_ttl: Duration,
    pub(super) authorization_mode: String,
    pub(super) allowed_ttl: Duration,
    pub(super) denied_ttl: Duration,
    pub(super) client_ca_file: Option<PathBuf>,
    pub(super) allowed_unsafe_sysctls: Vec<String>,
    pub(super) cgroup_root: String,
    pub(super) cluster_dns: Vec<IpAddr>,
    pub(super) cluster_domain: String,
    pub(super) log_files: i32,
    pub(super) log_size: String,
    pub(super) log_interval: Duration,
    pub(super) max_pods: i32,
    pub(super) static_pods: Option<PathBuf>,
    pub(super) pod_pids: i64,
    pub(super) resolv_conf: PathBuf,
    pub(super) runtime_endpoint: String,
    pub(super) image_endpoint: String,
    pub(super) images: ImageFlags,
    pub(super) provider_id: Option<String>,
    pub(super) register_node: bool,
    pub(super) taints: Vec<TaintText>,
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

/// What the kubelet is started with.
pub(super) struct Complete {
    pub(super) config: Config,
    /// The address of the kubelet API.
    pub(super) listen: SocketAddr,
    pub(super) access: AccessConfig,
    pub(super) tls: Tls,
    pub(super) kubeconfig: PathBuf,
    pub(super) serving: Serving,
    pub(super) sockets: Option<Sockets>,
}

/// Where the serving certificate comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Serving {
    Files(PathBuf, PathBuf),
    /// `kubelet.crt` in --cert-dir.
    SelfSigned,
    /// The API server.
    Requested,
}

/// The sockets of another container runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sockets {
    pub(super) runtime: PathBuf,
    pub(super) images: PathBuf,
}

impl Options {
    /// What the kubelet is started with; reports all errors together.
    pub(super) fn complete(&self, shown: Shown) -> Result<Complete, Mistakes> {
        let mut mistakes = Vec::new();
        check_addresses("--node-ip", &self.node_ip, &mut mistakes);
        check_labels("--node-labels", &self.labels, &mut mistakes);

        let sockets = self.sockets(&mut mistakes);
        let completed = (
            self.access(&mut mistakes),
            self.kubeconfig(&mut mistakes),
            self.serving(&mut mistakes),
            self.kubelet(shown, &mut mistakes),
            self.tls(&mut mistakes),
            port("port", self.port, &mut mistakes),
        );
        let (access, kubeconfig, serving, config, tls, port) = completed;

        match (kubeconfig, config) {
            (Some(kubeconfig), Some(config)) if mistakes.is_empty() => Ok(Complete {
                listen: SocketAddr::new(
                    self.address.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
                    port,
                ),
                config: Config { port, ..config },
                access,
                tls,
                kubeconfig,
                serving,
                sockets,
            }),
            _ => Err(Mistakes(mistakes)),
        }
    }

    fn kubelet(&self, shown: Shown, mistakes: &mut Vec<String>) -> Option<Config> {
        let name = match self.hostname_override.trim() {
            "" => host::name(),
            name => name.to_owned(),
        };
        let node_name = subdomain(&name.to_lowercase())
            .map_err(|why| mistakes.push(format!("--hostname-override: {why}")));
        let logs = self
            .logs()
            .map_err(|why| mistakes.push(why))
            .unwrap_or_default();
        let images = self.images.settings().map_err(|why| mistakes.extend(why));
        let max_pods = u32::try_from(self.max_pods)
            .map_err(|_| mistakes.push(format!("maxPods: {} is negative", self.max_pods)));
        let healthz = port("healthzPort", self.healthz_port, mistakes);
        let healthz_address = self
            .healthz_address
            .unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));

        let addresses = match self.node_ip.as_slice() {
            [] => vec![host::reachable_address(IpAddr::V4(Ipv4Addr::UNSPECIFIED))],
            given => given.to_vec(),
        };

        Some(Config {
            node_name: node_name.ok()?,
            addresses,
            external_addresses: Vec::new(),
            provider_id: self.provider_id.clone(),
            registers: self.register_node,
            data_dir: self.root_dir.clone(),
            cgroup_root: self.cgroup_root.clone(),
            labels: self.labels.clone(),
            taints: self.taints.iter().map(|taint| taint.0.clone()).collect(),
            cluster_dns: self.cluster_dns.clone(),
            cluster_domain: self.cluster_domain.clone(),
            resolv_conf: self.resolv_conf.clone(),
            manifests: self.static_pods.clone(),
            logs,
            max_pods: max_pods.ok()?,
            pod_pids: Some(self.pod_pids).filter(|limit| *limit > 0),
            unsafe_sysctls: self.allowed_unsafe_sysctls.clone(),
            images: images.unwrap_or_else(|()| ImageSettings::default()),
            reserved_ports: Vec::new(),
            port: 0,
            healthz: (healthz > 0).then(|| SocketAddr::new(healthz_address, healthz)),
            version: coracle_apiserver::VERSION,
            shown,
            journal: Journal::new(),
        })
    }

    fn logs(&self) -> Result<LogRotation, String> {
        let size: Quantity = self
            .log_size
            .parse()
            .map_err(|error| format!("containerLogMaxSize: {:?}: {error}", self.log_size))?;
        let max_size = u64::try_from(size.value())
            .ok()
            .filter(|size| *size > 0)
            .ok_or_else(|| format!("containerLogMaxSize: {} must be positive", self.log_size))?;
        let max_files = usize::try_from(self.log_files)
            .ok()
            .filter(|files| *files > 1)
            .ok_or_else(|| {
                format!(
                    "containerLogMaxFiles: {} must be greater than 1",
                    self.log_files
                )
            })?;

        Ok(LogRotation {
            max_size,
            max_files,
            check_interval: self.log_interval,
        })
    }

    fn access(&self, mistakes: &mut Vec<String>) -> AccessConfig {
        let permissions = match self.authorization_mode.as_str() {
            "Webhook" => true,
            "AlwaysAllow" => false,
            other => {
                mistakes.push(format!(
                    "authorization.mode: unknown authorization mode {other}"
                ));
                true
            }
        };

        let authorities = self.client_ca_file.as_deref().and_then(|file| {
            let read = fs::read(file).map_err(|error| error.to_string());
            let made =
                read.and_then(|pem| Authorities::new(&pem).map_err(|error| error.to_string()));
            made.map_err(|why| {
                mistakes.push(format!(
                    "authentication.x509.clientCAFile: {}: {why}",
                    file.display()
                ));
            })
            .ok()
        });

        AccessConfig {
            authorities,
            anonymous: self.anonymous,
            tokens: self.token_webhook,
            permissions,
            kept_for: KeptFor {
                tokens: self.token_ttl,
                allowed: self.allowed_ttl,
                denied: self.denied_ttl,
            },
        }
    }

    fn kubeconfig(&self, mistakes: &mut Vec<String>) -> Option<PathBuf> {
        if self.kubeconfig.is_none() {
            mistakes.push(String::from(
                "--kubeconfig is required: the kubelet does not run without an API server",
            ));
        }
        if self.rotate_certificates && self.cert_dir.as_os_str().is_empty() {
            mistakes.push(String::from("rotateCertificates requires --cert-dir"));
        }
        self.kubeconfig.clone()
    }

    fn serving(&self, mistakes: &mut Vec<String>) -> Serving {
        match (&self.tls_cert_file, &self.tls_private_key_file) {
            (Some(certificate), Some(key)) => Serving::Files(certificate.clone(), key.clone()),
            (None, None) if self.server_tls_bootstrap => Serving::Requested,
            (None, None) => Serving::SelfSigned,
            _ => {
                mistakes.push(String::from(
                    "tlsCertFile and tlsPrivateKeyFile must be specified together",
                ));
                Serving::SelfSigned
            }
        }
    }

    fn tls(&self, mistakes: &mut Vec<String>) -> Tls {
        let mut tls = Tls::default();
        tls.limits.tls13_only = match self.tls_min_version.as_str() {
            "" | "VersionTLS10" | "VersionTLS11" | "VersionTLS12" => false,
            "VersionTLS13" => true,
            other => {
                mistakes.push(format!("tlsMinVersion: unknown TLS version {other:?}"));
                true
            }
        };
        tls
    }

    fn sockets(&self, mistakes: &mut Vec<String>) -> Option<Sockets> {
        let mut socket = |key: &str, endpoint: &str| {
            let path = match endpoint.strip_prefix("unix://") {
                Some(path) => path,
                // Upstream accepts a path, too, and says that it is deprecated.
                None if endpoint.starts_with('/') => endpoint,
                None => {
                    mistakes.push(format!("{key}: {endpoint:?} must be unix:///PATH"));
                    endpoint
                }
            };
            Path::new(path).to_owned()
        };

        match (self.runtime_endpoint.as_str(), self.image_endpoint.as_str()) {
            ("", "") => None,
            ("", _) => {
                mistakes.push(String::from(
                    "imageServiceEndpoint requires containerRuntimeEndpoint",
                ));
                None
            }
            (runtime, images) => {
                let runtime = socket("containerRuntimeEndpoint", runtime);
                let images = match images {
                    "" => runtime.clone(),
                    images => socket("imageServiceEndpoint", images),
                };
                Some(Sockets { runtime, images })
            }
        }
    }
}

/// A port; 0 where it is none.
fn port(key: &str, number: i32, mistakes: &mut Vec<String>) -> u16 {
    u16::try_from(number).unwrap_or_else(|_| {
        mistakes.push(format!(
            "{key}: {number} must be between 0 and 65535, inclusive"
        ));
        0
    })
}
