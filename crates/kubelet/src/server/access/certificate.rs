//! Client certificates: the common name is the user, the organizations are the groups.

use std::sync::Arc;
use std::time::Duration;

use coracle_api::time::Timestamp;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::User;

/// Those whose signature on a client certificate counts.
pub struct Authorities {
    verifier: Arc<dyn ClientCertVerifier>,
}

/// Why client certificates cannot be judged at all.
#[derive(Debug, thiserror::Error)]
#[error("the authority of clients cannot be used: {0}")]
pub struct BadAuthority(String);

impl Authorities {
    /// From certificates in PEM.
    pub fn new(pem: &[u8]) -> Result<Authorities, BadAuthority> {
        let bad = |error: &dyn std::fmt::Display| BadAuthority(error.to_string());
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|error| bad(&error))?;
            roots.add(certificate).map_err(|error| bad(&error))?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
        Ok(Authorities { verifier: verifier.map_err(|error| bad(&error))? })
    }

    /// Whom a chain names; `None`: nobody whom we have to believe in.
    pub(super) fn user(&self, chain: &[CertificateDer<'_>], now: Timestamp) -> Option<User> {
        let [own, intermediates @ ..] = chain else { return None };
        let seconds = u64::try_from(now.unix_seconds()).unwrap_or_default();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        if let Err(error) = self.verifier.verify_client_cert(own, intermediates, now) {
            tracing::debug!(%error, "a client's certificate does not count");
            return None;
        }
        let (_, certificate) = X509Certificate::from_der(own).ok()?;
        let subject = certificate.subject();
        let name = subject.iter_common_name().next()?.as_str().ok()?.to_owned();
        let groups = subject.iter_organization().filter_map(|group| group.as_str().ok());
        let groups = groups.chain(["system:authenticated"]).map(str::to_owned).collect();
        Some(User { name, groups, ..User::default() })
    }
}
