//! `--etcd-listen`: the etcd API of the embedded store, and which clients are accepted. Write
//! access to the store is full access to the cluster: RBAC does not apply. A unix socket is
//! accessible to its owner only. A port always requires TLS and a client certificate, on loopback
//! too, where every user of the machine and every host-network pod could connect otherwise.

use std::path::PathBuf;
use std::sync::Arc;
use std::{fs, io};

use coracle_api::Value;
use coracle_api::certificate_subject::CertificateSubject;
use coracle_base::tls::Limits;
use coracle_settings::Element;
use coracle_store::etcd_server::{ClientRule, Clients, EtcdServerConfig, Listen, ServerTls};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::certificates::Pair;

/// The group that is authorized for everything.
const MASTERS: &str = "system:masters";

#[derive(Default)]
pub(super) struct EtcdPortFlags {
    pub(super) listen: Option<EtcdAddress>,
    pub(super) client_ca_file: Option<PathBuf>,
}

/// Where the etcd API is served.
pub(super) struct EtcdAddress(Listen);

impl Element for EtcdAddress {
    const KIND: &'static str = "address";

    fn parse(text: &str) -> Result<EtcdAddress, String> {
        etcd_address(text).map(EtcdAddress)
    }

    fn to_value(&self) -> Value {
        Value::from(match &self.0 {
            Listen::Unix(path) => format!("unix://{}", path.display()),
            Listen::Tcp(address) => address.to_string(),
        })
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum EtcdPortError {
    #[error("--etcd-listen-client-ca-file: {}: {error}", file.display())]
    Authority { file: PathBuf, error: io::Error },
    #[error(
        "--etcd-listen-client-ca-file needs --etcd-listen ADDRESS:PORT: a unix socket does not use certificates"
    )]
    Socket,
}

impl EtcdPortFlags {
    /// The configuration of the etcd API; `None`: it is off.
    pub(super) fn config(
        &self,
        server: &Pair,
        authority: &Pair,
    ) -> Result<Option<EtcdServerConfig>, EtcdPortError> {
        let Some(EtcdAddress(listen)) = &self.listen else {
            return Ok(None);
        };

        let mut config = EtcdServerConfig::new(listen.clone());
        match (listen, &self.client_ca_file) {
            (Listen::Unix(_), None) => {}
            (Listen::Unix(_), Some(_)) => return Err(EtcdPortError::Socket),
            (Listen::Tcp(_), _) => {
                config.tls = Some(ServerTls {
                    certificate: server.certificate.clone().into_bytes(),
                    key: server.key.clone().into_bytes(),
                    clients: Some(self.clients(authority)?),
                    limits: Limits::default(),
                });
            }
        }

        Ok(Some(config))
    }

    fn clients(&self, authority: &Pair) -> Result<Clients, EtcdPortError> {
        let Some(file) = &self.client_ca_file else {
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

/// Accepts a certificate of the cluster CA if its user is in `system:masters`.
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
