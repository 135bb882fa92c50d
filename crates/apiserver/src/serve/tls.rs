//! TLS: the serving certificate, and optional client certificates.
//!
//! Client certificates are requested, not required, and not verified here: the handshake only
//! proves that the client holds the key of the certificate that it presents.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use coracle_api::time::Timestamp;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
    verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{DigitallySignedStruct, DistinguishedName, ServerConfig, SignatureScheme};
use tokio_rustls::TlsAcceptor;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::files::{FileError, FromFiles, certificates};

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
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let algorithms = provider.signature_verification_algorithms;
    let files = vec![
        config.certificate.certificate.clone(),
        config.certificate.key.clone(),
    ];

    let of_key = provider.clone();
    let current = FromFiles::open(files, move |contents| {
        certified(&contents[0], &contents[1], &of_key)
    })?;
    let versions: &[&rustls::SupportedProtocolVersion] = if config.newest_only {
        &[&rustls::version::TLS13]
    } else {
        rustls::DEFAULT_VERSIONS
    };

    let mut settings = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)?
        .with_client_cert_verifier(Arc::new(AskOnly { algorithms }))
        .with_cert_resolver(Arc::new(Current {
            certificate: current,
            now: config.now,
        }));
    settings.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];

    if !config.http2 {
        settings.alpn_protocols.remove(0);
    }

    Ok(TlsAcceptor::from(Arc::new(settings)))
}

fn certified(
    certificate: &[u8],
    key: &[u8],
    provider: &CryptoProvider,
) -> Result<Arc<CertifiedKey>, String> {
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| format!("the key: {error}"))?;
    let chain = certificates(certificate)?;
    // This also finds a key that is another certificate's.
    CertifiedKey::from_der(chain, key, provider)
        .map(Arc::new)
        .map_err(|error| error.to_string())
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

/// The key that a certificate is about.
fn key_of(
    certificate: &CertificateDer<'_>,
) -> Result<SubjectPublicKeyInfoDer<'static>, rustls::Error> {
    let parsed = X509Certificate::from_der(certificate);
    let (_, parsed) = parsed.map_err(|_| rustls::CertificateError::BadEncoding)?;
    Ok(SubjectPublicKeyInfoDer::from(
        parsed.public_key().raw.to_vec(),
    ))
}

#[derive(Debug)]
struct AskOnly {
    algorithms: WebPkiSupportedAlgorithms,
}

impl ClientCertVerifier for AskOnly {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn verify_client_cert(
        &self,
        _own: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        match verify_tls13_signature(message, certificate, signature, &self.algorithms) {
            // A certificate that the library cannot parse is verified later like any other: only
            // the key counts here.
            Err(rustls::Error::InvalidCertificate(_)) => {
                let key = key_of(certificate)?;
                verify_tls13_signature_with_raw_key(message, &key, signature, &self.algorithms)
            }
            result => result,
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
