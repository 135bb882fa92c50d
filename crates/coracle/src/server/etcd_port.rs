//! `--etcd-listen`: the store as an etcd, and who is let in there.
//!
//! Whoever can use the store owns the cluster: RBAC does not stand before it. A unix socket is open
//! to its owner alone. A port always has TLS and always asks for a certificate, on loopback too,
//! where every user of the machine and every pod in the host's network could reach it otherwise.

use std::path::PathBuf;
use std::sync::Arc;
use std::{fs, io};

use clap::Args;
use coracle_api::certificate_subject::CertificateSubject;
use coracle_store::etcd_server::{ClientRule, Clients, EtcdServerConfig, Listen, ServerTls};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::certificates::Pair;

/// Those who may do anything.
const MASTERS: &str = "system:masters";

#[derive(Args)]
pub(super) struct EtcdPortFlags {
    /// Also show the store as an etcd, for etcdctl: unix:///PATH, or ADDRESS:PORT with TLS, for
    /// clients with a certificate of this cluster's authority in the group system:masters (DIR/pki:
    /// ca.crt, and admin.crt with admin.key for the client)
    #[arg(long, value_name = "ADDRESS", value_parser = etcd_address)]
    etcd_listen: Option<Listen>,
    /// Let in clients of this authority at --etcd-listen ADDRESS:PORT, all of them and no others,
    /// instead of system:masters of the cluster's own
    #[arg(long, value_name = "FILE", requires = "etcd_listen")]
    etcd_listen_client_ca_file: Option<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum EtcdPortError {
    #[error("--etcd-listen-client-ca-file: {}: {error}", file.display())]
    Authority { file: PathBuf, error: io::Error },
    #[error(
        "--etcd-listen-client-ca-file needs --etcd-listen ADDRESS:PORT: a unix socket asks for no certificates"
    )]
    Socket,
}

impl EtcdPortFlags {
    /// Where and for whom the store is shown; none: it is not.
    pub(super) fn config(
        &self,
        server: &Pair,
        authority: &Pair,
    ) -> Result<Option<EtcdServerConfig>, EtcdPortError> {
        let Some(listen) = &self.etcd_listen else {
            return Ok(None);
        };

        let mut config = EtcdServerConfig::new(listen.clone());
        match (listen, &self.etcd_listen_client_ca_file) {
            (Listen::Unix(_), None) => {}
            (Listen::Unix(_), Some(_)) => return Err(EtcdPortError::Socket),
            (Listen::Tcp(_), _) => {
                config.tls = Some(ServerTls {
                    certificate: server.certificate.clone().into_bytes(),
                    key: server.key.clone().into_bytes(),
                    clients: Some(self.clients(authority)?),
                });
            }
        }

        Ok(Some(config))
    }

    fn clients(&self, authority: &Pair) -> Result<Clients, EtcdPortError> {
        let Some(file) = &self.etcd_listen_client_ca_file else {
            let authority = authority.certificate.clone().into_bytes();
            return Ok(Clients {
                authority,
                rule: ClientRule::Only(Arc::new(check_master)),
            });
        };

        let unreadable = |error| EtcdPortError::Authority {
            file: file.clone(),
            error,
        };
        let authority = fs::read(file).map_err(unreadable)?;
        Ok(Clients {
            authority,
            rule: ClientRule::Any,
        })
    }
}

/// Whether a certificate of the cluster's authority is one of an administrator.
fn check_master(certificate: &[u8]) -> Result<(), String> {
    let (_, certificate) =
        X509Certificate::from_der(certificate).map_err(|error| error.to_string())?;
    let subject = CertificateSubject::from_der(certificate.subject().as_raw());
    match subject
        .and_then(CertificateSubject::user)
        .map_err(|error| error.to_string())?
    {
        Some(user) if user.groups.iter().any(|group| group == MASTERS) => Ok(()),
        Some(user) => Err(format!("{:?} is not in the group {MASTERS}", user.name)),
        None => Err("the certificate names no user".to_string()),
    }
}

fn etcd_address(text: &str) -> Result<Listen, String> {
    match text.strip_prefix("unix://") {
        Some(path) if path.starts_with('/') => Ok(Listen::Unix(PathBuf::from(path))),
        Some(path) => Err(format!("{path:?} is not an absolute path")),
        None => text
            .parse()
            .map(Listen::Tcp)
            .map_err(|_| "expected unix:///PATH or ADDRESS:PORT".to_string()),
    }
}
