//! TLS to a server: which CAs are trusted, which certificate is presented.

use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use x509_parser::prelude::{ASN1Time, FromDer, X509Certificate};

use super::{alpn, certificates, private_key, provider, signature};

/// The CA bundles of systems; the first one that exists is used.
const SYSTEM_AUTHORITIES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
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
    Settings(#[from] Error),
}

/// Which servers are trusted.
pub enum Trust {
    /// Those with a certificate that one of these CAs signed.
    Roots(RootCertStore),
    /// These too, and those with one of these certificates, whoever signed it.
    Certificates {
        roots: RootCertStore,
        trusted: Vec<CertificateDer<'static>>,
    },
    /// All that hold the key of their certificate.
    Any,
}

/// A certificate with its chain, and its key.
pub type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// The configuration of new connections, which offer HTTP/1.1, and HTTP/2 if it is asked for.
pub fn configure(
    trust: Trust,
    identity: Option<Identity>,
    http2: bool,
) -> Result<ClientConfig, Error> {
    let provider = provider();
    let algorithms = provider.signature_verification_algorithms;

    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let builder = match trust {
        Trust::Any => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AcceptAnyCertificate { algorithms })),
        Trust::Roots(roots) => builder.with_root_certificates(roots),
        Trust::Certificates { roots, trusted } => {
            let verifier = TrustedServer::new(roots, trusted)?;
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(verifier))
        }
    };

    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some((chain, key)) => builder.with_client_auth_cert(chain, key)?,
    };
    config.alpn_protocols = alpn(http2);

    Ok(config)
}

/// The same from PEM, with HTTP/2.
pub fn config(tls: &Tls) -> Result<ClientConfig, TlsError> {
    let trust = match (tls.insecure, &tls.authorities) {
        (true, _) => Trust::Any,
        (false, Some(pem)) => Trust::Certificates {
            roots: usable_roots(pem)?,
            trusted: certificates(pem).map_err(TlsError::Authority)?,
        },
        (false, None) => Trust::Roots(system_roots()?),
    };
    let identity = match &tls.identity {
        None => None,
        Some((certificate, key)) => Some((
            certificates(certificate).map_err(TlsError::Identity)?,
            private_key(key).map_err(TlsError::Identity)?,
        )),
    };

    Ok(configure(trust, identity, true)?)
}

/// The configuration of connections that trust these CAs, present no certificate, and speak
/// HTTP/1.1.
pub fn trusting(roots: RootCertStore) -> Result<ClientConfig, TlsError> {
    Ok(configure(Trust::Roots(roots), None, false)?)
}

/// The CAs that the system trusts.
pub fn system_roots() -> Result<RootCertStore, TlsError> {
    let bundle = SYSTEM_AUTHORITIES
        .iter()
        .map(fs::read)
        .find_map(io::Result::ok);
    usable_roots(&bundle.ok_or(TlsError::NoAuthorities)?)
}

/// The CAs of a PEM text but those that this library does not support, which are harmless beside
/// others.
fn usable_roots(pem: &[u8]) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem).map_err(TlsError::Authority)? {
        if let Err(error) = roots.add(certificate) {
            tracing::debug!(%error, "unsupported CA certificate skipped");
        }
    }

    match roots.is_empty() {
        true => Err(TlsError::Authority("no certificate found".to_string())),
        false => Ok(roots),
    }
}

/// Accepts servers whose certificate a trusted CA has signed, and those whose certificate is trusted
/// itself, whoever has signed it: Go's library does so, and test frameworks configure webhooks with
/// the certificate of the server instead of its CA.
#[derive(Debug)]
struct TrustedServer {
    chains: Arc<WebPkiServerVerifier>,
    trusted: Vec<CertificateDer<'static>>,
}

impl TrustedServer {
    fn new(
        roots: RootCertStore,
        trusted: Vec<CertificateDer<'static>>,
    ) -> Result<TrustedServer, Error> {
        let chains =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider()).build();
        Ok(TrustedServer {
            chains: chains.map_err(|error| Error::General(error.to_string()))?,
            trusted,
        })
    }
}

impl ServerCertVerifier for TrustedServer {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.trusted.contains(certificate) {
            return verify_itself(certificate, name, now);
        }
        let chains = &self.chains;
        chains.verify_server_cert(certificate, intermediates, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let chains = &self.chains;
        chains.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let chains = &self.chains;
        chains.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chains.supported_verify_schemes()
    }
}

/// Verifies all of a certificate but its signature: the name, the time, and what it is for.
fn verify_itself(
    certificate: &CertificateDer<'_>,
    name: &ServerName<'_>,
    now: UnixTime,
) -> Result<ServerCertVerified, Error> {
    verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
    let (_, parsed) =
        X509Certificate::from_der(certificate).map_err(|_| CertificateError::BadEncoding)?;

    let at = |time: ASN1Time| {
        let seconds = u64::try_from(time.timestamp()).unwrap_or_default();
        UnixTime::since_unix_epoch(Duration::from_secs(seconds))
    };
    let validity = parsed.validity();
    let (not_before, not_after) = (at(validity.not_before), at(validity.not_after));
    if now < not_before {
        return Err(CertificateError::NotValidYetContext {
            time: now,
            not_before,
        }
        .into());
    }
    if now > not_after {
        return Err(CertificateError::ExpiredContext {
            time: now,
            not_after,
        }
        .into());
    }

    let usage = parsed
        .extended_key_usage()
        .map_err(|_| CertificateError::BadEncoding)?;
    match usage {
        Some(usage) if !usage.value.server_auth && !usage.value.any => {
            Err(CertificateError::InvalidPurpose.into())
        }
        _ => Ok(ServerCertVerified::assertion()),
    }
}

/// Accepts any server that holds the key of its certificate.
#[derive(Debug)]
pub(super) struct AcceptAnyCertificate {
    pub(super) algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for AcceptAnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        signature::verify_tls12(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        signature::verify_tls13(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
