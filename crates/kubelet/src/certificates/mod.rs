//! The certificates of a node: with which its kubelet goes to the API server, and with which it
//! serves its own API.
//!
//! Both are requested with CertificateSigningRequests ([`request`]), kept on disk under upstream's
//! names ([`store`]) and replaced before they expire ([`rotation`]). [`bootstrap`] gets the first
//! client certificate with the credentials of a token.

pub mod bootstrap;
pub mod request;
pub mod rotation;
pub mod store;

use std::io;
use std::path::PathBuf;

use coracle_api::time::Timestamp;
use coracle_base::tls::certificates;
use rcgen::KeyPair;
use x509_parser::prelude::{FromDer, X509Certificate};

pub use bootstrap::{BootstrapError, bootstrap};
pub use request::{Names, Purpose};
pub use rotation::{Rotation, ServingCertificate};
pub use store::CertificateStore;

/// Why a certificate cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    #[error("{}: {source}", file.display())]
    File { file: PathBuf, source: io::Error },
    #[error("cannot make a key or a request: {0}")]
    Make(#[from] rcgen::Error),
    #[error("certificate signing request {name}")]
    Api {
        name: String,
        source: coracle_client::Error,
    },
    #[error("certificate signing request {name} is denied, reason: {reason}, message: {message}")]
    Denied {
        name: String,
        reason: String,
        message: String,
    },
    #[error("certificate signing request {name} failed, reason: {reason}, message: {message}")]
    Failed {
        name: String,
        reason: String,
        message: String,
    },
    #[error("certificate signing request {0} was deleted")]
    Deleted(String),
    #[error("certificate signing request {0} exists and is not one of ours; delete it")]
    Foreign(String),
    #[error("the certificate of request {name} cannot be used: {why}")]
    Unusable { name: String, why: String },
}

/// What a certificate in PEM says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    pub common_name: String,
    /// Subject and issuer, DER-encoded.
    pub subject: Vec<u8>,
    pub issuer: Vec<u8>,
    pub not_before: Timestamp,
    pub not_after: Timestamp,
    pub names: Names,
}

impl Facts {
    /// Those of the first certificate of a text; `None`: it cannot be read.
    pub fn of(pem: &[u8]) -> Option<Facts> {
        let chain = certificates(pem).ok()?;
        let (_, certificate) = X509Certificate::from_der(chain.first()?).ok()?;
        let common_name = certificate.subject().iter_common_name().next();
        let seconds = |time: x509_parser::time::ASN1Time| Timestamp::from_unix(time.timestamp(), 0);

        Some(Facts {
            common_name: common_name
                .and_then(|name| name.as_str().ok())
                .unwrap_or_default()
                .to_owned(),
            subject: certificate.subject().as_raw().to_vec(),
            issuer: certificate.issuer().as_raw().to_vec(),
            not_before: seconds(certificate.validity().not_before),
            not_after: seconds(certificate.validity().not_after),
            names: Names::of(&certificate),
        })
    }
}

/// A new key, ECDSA P-256 as upstream's.
fn new_key() -> Result<KeyPair, CertificateError> {
    Ok(KeyPair::generate()?)
}
