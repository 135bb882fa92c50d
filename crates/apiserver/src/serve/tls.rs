//! TLS: the serving certificate, and optional client certificates.
//!
//! Client certificates are requested, not required, and not verified here: the handshake only
//! proves that the client holds the key of the certificate that it presents.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use coracle_api::time::Timestamp;
use coracle_base::tls::Limits;
use coracle_base::tls::named::{ByName, CurrentCertificate, Named};
use coracle_base::tls::server::{certified_key, requesting_certificates};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio_rustls::TlsAcceptor;

use crate::files::{FileError, FromFiles};

/// A certificate with its chain, and the key.
#[derive(Clone, Debug)]
pub struct CertificateFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// A certificate for some of the names that clients have for the server.
#[derive(Clone, Debug)]
pub struct NamedCertificate {
    pub files: CertificateFiles,
    /// Names and patterns; none: the names of the certificate.
    pub names: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot use the serving certificate")]
    Certificate(#[from] FileError),
    #[error("cannot set up TLS")]
    Settings(#[from] rustls::Error),
}

/// How connections are secured.
pub struct TlsConfig {
    pub certificate: CertificateFiles,
    pub named_certificates: Vec<NamedCertificate>,
    pub limits: Limits,
    pub http2: bool,
    /// The wall clock.
    pub now: fn() -> Timestamp,
}

/// Accepts connections with the current content of the files.
pub fn acceptor(config: &TlsConfig) -> Result<TlsAcceptor, TlsError> {
    let other = Arc::new(Current::open(&config.certificate, config.now)?);
    let named = config.named_certificates.iter().map(|named| {
        let certificate = Current::open(&named.files, config.now)?;
        Ok(Named {
            names: named.names.clone(),
            certificate: Arc::new(certificate),
        })
    });

    let named = named.collect::<Result<_, FileError>>()?;
    let serving = Arc::new(ByName { named, other });
    let settings = requesting_certificates(serving, &config.limits, config.http2)?;
    Ok(TlsAcceptor::from(Arc::new(settings)))
}

struct Current {
    certificate: FromFiles<Arc<CertifiedKey>>,
    now: fn() -> Timestamp,
}

impl Current {
    fn open(files: &CertificateFiles, now: fn() -> Timestamp) -> Result<Current, FileError> {
        let files = vec![files.certificate.clone(), files.key.clone()];
        let certificate = FromFiles::open(files, |contents| {
            certified_key(&contents[0], &contents[1]).map(Arc::new)
        })?;
        Ok(Current { certificate, now })
    }
}

impl fmt::Debug for Current {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Current")
    }
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }
}

impl CurrentCertificate for Current {
    fn current(&self) -> Arc<CertifiedKey> {
        self.certificate.current((self.now)()).as_ref().clone()
    }
}
