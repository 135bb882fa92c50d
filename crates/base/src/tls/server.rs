//! TLS of a port: the serving certificate, and what is asked of clients.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ResolvesServerCert, VerifierBuilderError, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::TLS13;
use rustls::{
    DigitallySignedStruct, DistinguishedName, ServerConfig, SignatureScheme,
    SupportedProtocolVersion,
};

use super::{Limits, alpn, certificates, private_key, provider, roots, signature};

/// A port that asks clients for a certificate, requires none, and verifies none: the handshake
/// only proves that a client holds the key of what it presents.
pub fn requesting_certificates(
    serving: Arc<dyn ResolvesServerCert>,
    limits: &Limits,
    http2: bool,
) -> Result<ServerConfig, rustls::Error> {
    let provider = limits.provider();
    let algorithms = provider.signature_verification_algorithms;

    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions(limits))?
        .with_client_cert_verifier(Arc::new(RequestCertificate { algorithms }))
        .with_cert_resolver(serving);
    config.alpn_protocols = alpn(http2);

    Ok(config)
}

/// A port that asks clients for no certificate, or requires one that the verifier accepts.
pub fn requiring_certificates(
    serving: CertifiedKey,
    verifier: Option<Arc<dyn ClientCertVerifier>>,
    limits: &Limits,
) -> Result<ServerConfig, rustls::Error> {
    let builder = ServerConfig::builder_with_provider(limits.provider())
        .with_protocol_versions(versions(limits))?;
    let builder = match verifier {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };

    let serving = SingleCertAndKey::from(serving);
    let mut config = builder.with_cert_resolver(Arc::new(serving));
    config.alpn_protocols = alpn(true);

    Ok(config)
}

fn versions(limits: &Limits) -> &'static [&'static SupportedProtocolVersion] {
    static ONLY_TLS13: &[&SupportedProtocolVersion] = &[&TLS13];
    match limits.tls13_only {
        true => ONLY_TLS13,
        false => rustls::DEFAULT_VERSIONS,
    }
}

/// A certificate with its chain, and its key, in PEM. A key of another certificate is an error.
pub fn certified_key(certificate: &[u8], key: &[u8]) -> Result<CertifiedKey, String> {
    let key = private_key(key).map_err(|error| format!("the key: {error}"))?;
    let chain = certificates(certificate)?;
    CertifiedKey::from_der(chain, key, &provider()).map_err(|error| error.to_string())
}

/// Accepts clients whose certificate is signed by one of these CAs.
pub fn signed_by(
    authorities: &[CertificateDer<'static>],
) -> Result<Arc<dyn ClientCertVerifier>, VerifierError> {
    let roots = Arc::new(roots(authorities)?);
    Ok(WebPkiClientVerifier::builder_with_provider(roots, provider()).build()?)
}

/// Why the certificates of clients cannot be verified.
#[derive(Debug, thiserror::Error)]
pub enum VerifierError {
    #[error(transparent)]
    Authority(#[from] rustls::Error),
    #[error(transparent)]
    Verifier(#[from] VerifierBuilderError),
}

/// Requests client certificates without requiring or verifying them.
#[derive(Debug)]
struct RequestCertificate {
    algorithms: WebPkiSupportedAlgorithms,
}

impl ClientCertVerifier for RequestCertificate {
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
        signature::verify_tls12(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        signature::verify_tls13(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
