//! TLS settings for connections to kubelets and pods: the client certificate, and the CAs to trust.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use coracle_api::time::Timestamp;
use coracle_base::tls::HTTP1;
use coracle_base::tls::client::{self, Tls};
use rustls::ClientConfig;

use crate::files::{FileError, FromFiles};

/// How kubelets are reached.
#[derive(Clone, Debug)]
pub struct KubeletConfig {
    /// The CAs of kubelet certificates; none: any certificate is accepted.
    pub certificate_authorities: Vec<PathBuf>,
    /// What this server shows them, with its key.
    pub client_certificate: Option<(PathBuf, PathBuf)>,
    /// How long a connection may take to come about.
    pub timeout: Duration,
    /// Types of addresses, the first that a node has counts.
    pub preferred_address_types: Vec<String>,
    /// The port where a node's status has none.
    pub port: u16,
}

impl Default for KubeletConfig {
    fn default() -> KubeletConfig {
        let types = [
            "Hostname",
            "InternalDNS",
            "InternalIP",
            "ExternalDNS",
            "ExternalIP",
        ];

        KubeletConfig {
            certificate_authorities: Vec::new(),
            client_certificate: None,
            timeout: Duration::from_secs(5),
            preferred_address_types: types.map(str::to_owned).to_vec(),
            port: 10250,
        }
    }
}

/// The TLS settings of connections to kubelets, from the current files.
pub struct Identity {
    settings: Settings,
}

enum Settings {
    Fixed(Arc<ClientConfigs>),
    Files(FromFiles<ClientConfigs>),
}

/// The sort of backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BackendKind {
    Kubelet,
    /// One whose certificate the client does not want verified.
    UnverifiedKubelet,
    /// A server in a pod: any certificate is accepted, and no client certificate is sent.
    Other,
}

/// The settings for each kind.
struct ClientConfigs {
    kubelet: Arc<ClientConfig>,
    unverified_kubelet: Arc<ClientConfig>,
    other: Arc<ClientConfig>,
}

impl Identity {
    pub fn read(config: &KubeletConfig) -> Result<Identity, FileError> {
        let authorities = config.certificate_authorities.len();
        let mut files = config.certificate_authorities.clone();
        if let Some((certificate, key)) = &config.client_certificate {
            files.extend([certificate.clone(), key.clone()]);
        }

        if files.is_empty() {
            let configs = settings(None, None).map_err(|reason| FileError::Content {
                file: PathBuf::new(),
                reason,
            });
            return Ok(Identity {
                settings: Settings::Fixed(Arc::new(configs?)),
            });
        }

        let read = FromFiles::open(files, move |contents| {
            let (authorities, identity) = contents.split_at(authorities);
            let identity = match identity {
                [certificate, key] => Some((certificate.clone(), key.clone())),
                _ => None,
            };
            let authorities = (!authorities.is_empty()).then(|| authorities.join(&b'\n'));
            settings(authorities, identity)
        });

        Ok(Identity {
            settings: Settings::Files(read?),
        })
    }

    pub(super) fn settings(&self, now: Timestamp, kind: BackendKind) -> Arc<ClientConfig> {
        let configs = match &self.settings {
            Settings::Fixed(configs) => Arc::clone(configs),
            Settings::Files(files) => files.current(now),
        };
        Arc::clone(match kind {
            BackendKind::Kubelet => &configs.kubelet,
            BackendKind::UnverifiedKubelet => &configs.unverified_kubelet,
            BackendKind::Other => &configs.other,
        })
    }
}

fn settings(
    authorities: Option<Vec<u8>>,
    identity: Option<(Vec<u8>, Vec<u8>)>,
) -> Result<ClientConfigs, String> {
    let make = |tls: &Tls| -> Result<Arc<ClientConfig>, String> {
        let mut settings = client::config(tls).map_err(|error| error.to_string())?;
        // Only this version of HTTP can be left for another protocol.
        settings.alpn_protocols = vec![HTTP1.to_vec()];
        Ok(Arc::new(settings))
    };

    let insecure = authorities.is_none();
    Ok(ClientConfigs {
        kubelet: make(&Tls {
            authorities,
            identity: identity.clone(),
            insecure,
        })?,
        unverified_kubelet: make(&Tls {
            authorities: None,
            identity,
            insecure: true,
        })?,
        other: make(&Tls {
            authorities: None,
            identity: None,
            insecure: true,
        })?,
    })
}
