//! What the flags say, and what becomes of it: one configuration, or every mistake at once.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use coracle_apiserver::Config;
use coracle_apiserver::run::CertificateFiles;

use crate::flags::Mistakes;

/// The flags as they were given.
pub(super) struct Options {
    pub(super) bind_address: IpAddr,
    pub(super) secure_port: u16,
    pub(super) tls_cert_file: Option<PathBuf>,
    pub(super) tls_private_key_file: Option<PathBuf>,
    pub(super) client_ca_file: Option<PathBuf>,
    pub(super) anonymous_auth: bool,
    pub(super) authorization_mode: Vec<String>,
    pub(super) data_dir: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            bind_address: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            secure_port: 6443,
            tls_cert_file: None,
            tls_private_key_file: None,
            client_ca_file: None,
            anonymous_auth: true,
            authorization_mode: Vec::new(),
            data_dir: None,
        }
    }
}

/// Options that hold together, with what follows from them filled in.
pub(super) struct Settings {
    pub(super) listen: SocketAddr,
    pub(super) data_dir: PathBuf,
    pub(super) config: Config,
}

/// Modes that upstream knows.
const MODES: [&str; 6] = ["AlwaysAllow", "AlwaysDeny", "ABAC", "Webhook", "RBAC", "Node"];

impl Options {
    pub(super) fn complete(&self) -> Result<Settings, Mistakes> {
        let mut mistakes = Vec::new();
        if self.secure_port == 0 {
            mistakes.push(
                "--secure-port 0 must be between 1 and 65535, inclusive. It cannot be turned off with 0"
                    .to_string(),
            );
        }
        self.check_modes(&mut mistakes);
        if self.data_dir.is_none() {
            mistakes.push("--data-dir must be given".to_string());
        }
        match (&self.tls_cert_file, &self.tls_private_key_file, &self.data_dir) {
            (Some(certificate), Some(key), Some(data_dir)) if mistakes.is_empty() => Ok(Settings {
                listen: SocketAddr::new(self.bind_address, self.secure_port),
                data_dir: data_dir.clone(),
                config: Config {
                    certificate: CertificateFiles { certificate: certificate.clone(), key: key.clone() },
                    client_authorities: self.client_ca_file.clone(),
                    anonymous: self.anonymous_auth && !self.everything_is_allowed(),
                    shared_store: false,
                },
            }),
            (certificate, key, _) => {
                if certificate.is_none() || key.is_none() {
                    mistakes.push("--tls-cert-file and --tls-private-key-file must be given".to_string());
                }
                Err(Mistakes(mistakes))
            }
        }
    }

    /// Then nobody is let in without saying who: upstream's rule.
    fn everything_is_allowed(&self) -> bool {
        self.authorization_mode.is_empty() || self.authorization_mode.iter().any(|mode| mode == "AlwaysAllow")
    }

    fn check_modes(&self, mistakes: &mut Vec<String>) {
        for mode in self.authorization_mode.iter().filter(|mode| *mode != "AlwaysAllow") {
            mistakes.push(if MODES.contains(&mode.as_str()) {
                format!("authorization-mode {mode:?} is not supported yet: this server has AlwaysAllow alone")
            } else {
                format!("authorization-mode {mode:?} is not a valid mode")
            });
        }
    }
}
