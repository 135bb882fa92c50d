//! TLS to a server: trusted CAs and the client certificate.

use std::sync::Arc;
use std::{fs, io};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

/// The CA bundles of systems; the first one that exists is used.
const SYSTEM_AUTHORITIES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The certificates of a connection, in PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// The CA of the server; `None`: the system's trust store.
    pub authorities: Option<Vec<u8>>,
    /// The client certificate with its chain, and the key.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
    /// Skip the verification of the server's certificate.
    pub insecure: bool,
}

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The CA certificates are invalid.
    #[error("invalid CA certificate: {0}")]
    Authority(String),
    /// The client certificate or key is invalid.
    #[error("invalid client certificate or key: {0}")]
    Identity(String),
    /// The system's CA bundle is not found.
    #[error("no CA certificate given and no system CA bundle found")]
    NoAuthorities,
    /// The TLS library reports an error.
    #[error("cannot set up TLS")]
    Settings(#[from] rustls::Error),
}

/// The TLS configuration of new connections.
pub fn settings(tls: &Tls) -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let algorithms = provider.signature_verification_algorithms;

    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let builder = match (tls.insecure, &tls.authorities) {
        (true, _) => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AcceptAnyCertificate { algorithms })),
        (false, Some(pem)) => builder.with_root_certificates(roots(pem)?),
        (false, None) => builder.with_root_certificates(roots(&system_authorities()?)?),
    };

    let mut settings = match &tls.identity {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let bad = |error: rustls::pki_types::pem::Error| TlsError::Identity(error.to_string());
            let chain: Vec<_> = CertificateDer::pem_slice_iter(certificate)
                .collect::<Result<_, _>>()
                .map_err(bad)?;
            let key = PrivateKeyDer::from_pem_slice(key).map_err(bad)?;
            builder.with_client_auth_cert(chain, key)?
        }
    };
    settings.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];

    Ok(settings)
}

fn roots(pem: &[u8]) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| TlsError::Authority(error.to_string()))?;
        // A certificate that this library does not support is harmless beside others.
        if let Err(error) = roots.add(certificate) {
            tracing::debug!(%error, "unsupported CA certificate skipped");
        }
    }

    if roots.is_empty() {
        return Err(TlsError::Authority("no certificate found".to_string()));
    }

    Ok(roots)
}

fn system_authorities() -> Result<Vec<u8>, TlsError> {
    let found = SYSTEM_AUTHORITIES
        .iter()
        .map(fs::read)
        .find_map(io::Result::ok);
    found.ok_or(TlsError::NoAuthorities)
}

/// `insecure-skip-tls-verify`: accept any server.
#[derive(Debug)]
struct AcceptAnyCertificate {
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for AcceptAnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
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
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
