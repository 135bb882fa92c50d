//! The configuration of the API server that `coracle server` runs.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use coracle_apiserver::access::{Mode, ServiceAccountConfig, TokenConfig};
use coracle_apiserver::admission::{PluginConfigurations, PluginFlags};
use coracle_apiserver::authn::FrontProxyConfig;
use coracle_apiserver::bootstrap::Advertised;
use coracle_apiserver::connect::KubeletConfig;
use coracle_apiserver::registry::NodePorts;
use coracle_apiserver::webhook::{AdmissionCredentials, Route};
use coracle_apiserver::{Browsers, Config, RuntimeConfig};
use coracle_base::tls::Limits;
use coracle_client::Journal;
use ipnet::IpNet;

use super::Server;
use crate::certificates::{CertificateError, Certificates};
use crate::storage::Storage;

impl Server {
    /// The configuration of the API server; `reachable` is its advertised address.
    pub(super) fn apiserver_config(
        &self,
        pki: &Certificates,
        storage: &Storage,
        reachable: SocketAddr,
        services: &[IpNet],
        journal: Journal,
    ) -> Result<Config, CertificateError> {
        Ok(Config {
            certificate: pki.files("apiserver"),
            flags: self.flags.clone(),
            named_certificates: Vec::new(),
            tls_limits: Limits::default(),
            http2: true,
            goaway_chance: 0.0,
            browsers: Browsers::default(),
            http2_streams: 100,
            client_authorities: Some(pki.files("ca").certificate),
            front_proxy: Some(front_proxy(pki)?),
            tokens: tokens(
                pki.service_account_key()?,
                &self.network.cluster_domain,
                reachable,
            ),
            authorization: vec![Mode::Node, Mode::Rbac],
            anonymous: true,
            runtime_config: RuntimeConfig(self.runtime_config.0.clone()),
            shared_store: storage.is_shared(),
            publishes_endpoints: true,
            compaction: storage.compaction(),
            admission: PluginFlags {
                enable: vec!["NodeRestriction".to_string()],
                ..PluginFlags::default()
            },
            plugin_configurations: PluginConfigurations::default(),
            webhook_credentials: AdmissionCredentials::default(),
            webhook_route: Route::ClusterIp,
            proxy_client_certificate: {
                let client = pki.files("front-proxy-client");
                Some((client.certificate, client.key))
            },
            allow_privileged: true,
            request_timeout: Duration::from_secs(60),
            bootstrap: true,
            min_request_timeout: Duration::from_secs(1800),
            shutdown_delay: Duration::ZERO,
            event_ttl: self.etcd.event_ttl,
            advertised: advertised(reachable, services),
            node_ports: NodePorts::USUAL,
            kubelets: kubelets(pki, self.network.kubelet_certificate_authority.0.as_deref())?,
            journal,
        })
    }
}

/// Whose headers name users: this server's own, when it forwards requests to other servers.
fn front_proxy(pki: &Certificates) -> Result<FrontProxyConfig, CertificateError> {
    pki.front_proxy()?;
    let texts = |text: &str| vec![text.to_owned()];
    Ok(FrontProxyConfig {
        authorities: pki.files("front-proxy-ca").certificate,
        names: texts("front-proxy-client"),
        user_headers: texts("X-Remote-User"),
        uid_headers: texts("X-Remote-Uid"),
        group_headers: texts("X-Remote-Group"),
        extra_prefixes: texts("X-Remote-Extra-"),
    })
}

/// How the API server connects to kubelets: by IP address, with mutual TLS by the cluster CA. Other
/// kubelets may have certificates of the CA that is `given`, or of nobody if that is empty.
fn kubelets(pki: &Certificates, given: Option<&str>) -> Result<KubeletConfig, CertificateError> {
    pki.kubelet_client(&pki.authority()?)?;
    let client = pki.files("apiserver-kubelet-client");
    Ok(KubeletConfig {
        certificate_authorities: match given {
            None => vec![pki.files("ca").certificate],
            Some("") => Vec::new(),
            Some(file) => vec![pki.files("ca").certificate, PathBuf::from(file)],
        },
        client_certificate: Some((client.certificate, client.key)),
        preferred_address_types: ["InternalIP", "ExternalIP", "Hostname"]
            .map(str::to_owned)
            .to_vec(),
        ..KubeletConfig::default()
    })
}

/// The address that the Service `kubernetes` points to.
fn advertised(at: SocketAddr, services: &[IpNet]) -> Advertised {
    Advertised {
        address: at.ip(),
        port: at.port(),
        service_cidrs: services.to_vec(),
        node_port: 0,
    }
}

/// Token settings of service accounts; `address` is where others reach this server.
fn tokens(signing_key_file: PathBuf, domain: &str, address: SocketAddr) -> TokenConfig {
    let issuer = format!("https://kubernetes.default.svc.{domain}");
    TokenConfig {
        static_file: None,
        bootstrap: true,
        audiences: vec![issuer.clone()],
        service_accounts: Some(ServiceAccountConfig {
            issuers: vec![issuer],
            signing_key_file,
            key_files: Vec::new(),
            jwks_uri: format!("https://{address}/openid/v1/jwks"),
            extends: true,
            max_seconds: None,
        }),
    }
}
