//! Who is asking: the chain of authenticators.
//!
//! A client certificate is asked for in the TLS handshake and judged here, so that a bad one is an answer with a Status
//! and not a broken connection.

use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::ApiError;

/// A user, as authorization and audit know one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub groups: Vec<String>,
}

/// Who makes a request, and with which program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    pub user: User,
    /// It names the owner of fields where the request does not.
    pub user_agent: String,
}

impl Caller {
    /// The server itself.
    pub fn system() -> Caller {
        let groups = vec!["system:masters".to_string(), "system:authenticated".to_string()];
        let user = User { name: "system:apiserver".to_string(), groups };
        Caller { user, user_agent: "coracle".to_string() }
    }
}

impl User {
    /// Whoever shows nothing.
    pub fn anonymous() -> User {
        User { name: "system:anonymous".to_string(), groups: vec!["system:unauthenticated".to_string()] }
    }
}

/// Judges client certificates: the common name is the user, the organizations are the groups.
pub struct Certificates {
    verifier: Arc<dyn ClientCertVerifier>,
}

/// Why client certificates cannot be judged at all.
#[derive(Debug, thiserror::Error)]
#[error("the client CA cannot be used: {0}")]
pub struct BadClientCa(String);

impl Certificates {
    pub fn new(authorities: &[CertificateDer<'static>]) -> Result<Certificates, BadClientCa> {
        let mut roots = RootCertStore::empty();
        for authority in authorities {
            roots.add(authority.clone()).map_err(|error| BadClientCa(error.to_string()))?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
        Ok(Certificates { verifier: verifier.map_err(|error| BadClientCa(error.to_string()))? })
    }

    /// The user of a presented chain.
    pub fn user(&self, chain: &[CertificateDer<'_>], now: UnixTime) -> Result<User, ApiError> {
        let [own, intermediates @ ..] = chain else { return Err(ApiError::unauthorized()) };
        let judged = self.verifier.verify_client_cert(own, intermediates, now);
        judged.map_err(|_| ApiError::unauthorized())?;
        let (_, certificate) = X509Certificate::from_der(own).map_err(|_| ApiError::unauthorized())?;
        let subject = certificate.subject();
        let name = subject.iter_common_name().find_map(|name| name.as_str().ok()).unwrap_or_default();
        if name.is_empty() {
            return Err(ApiError::unauthorized());
        }
        let organizations = subject.iter_organization().filter_map(|name| name.as_str().ok());
        let mut groups: Vec<String> = organizations.map(str::to_string).collect();
        groups.push("system:authenticated".to_string());
        Ok(User { name: name.to_string(), groups })
    }
}
