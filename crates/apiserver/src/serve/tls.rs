//! TLS: the serving certificate, and optional client certificates.
//!
//! Client certificates are requested, not required, and not verified here: the handshake only
//! proves that the client holds the key of the certificate that it presents.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use coracle_api::time::Timestamp;
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
    /// Only TLS 1.3.
    pub newest_only: bool,
    pub http2: bool,
    /// The wall clock.
    pub now: fn() -> Timestamp,
}

/// Accepts connections with the current content of the files.
pub fn acceptor(config: &TlsConfig) -> Result<TlsAcceptor, TlsError> {
    let files = vec![
        config.certificate.certificate.clone(),
        config.certificate.key.clone(),
    ];
    let current = FromFiles::open(files, |contents| {
        certified_key(&contents[0], &contents[1]).map(Arc::new)
    })?;

    let serving = Arc::new(Current {
        certificate: current,
        now: config.now,
    });
    let settings = requesting_certificates(serving, config.newest_only, config.http2)?;
    Ok(TlsAcceptor::from(Arc::new(settings)))
}

struct Current {
    certificate: FromFiles<Arc<CertifiedKey>>,
    now: fn() -> Timestamp,
}

impl fmt::Debug for Current {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Current")
    }
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.certificate.current((self.now)()).as_ref().clone())
    }
}
