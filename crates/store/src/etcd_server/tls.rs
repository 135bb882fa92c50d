//! TLS on a port: the serving certificate, and which clients are accepted.
//!
//! A client presents a certificate of the configured CA, and a [`ClientRule`] decides whether its
//! owner may use the store. Both are checked in the handshake: a rejected client never reaches HTTP
//! and receives the alert `access_denied`.

use coracle_base::tls::server::{VerifierError, certified_key, requiring_certificates, signed_by};
use coracle_base::tls::{Limits, certificates};
use rustls::{
    DigitallySignedStruct, DistinguishedName, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    pki_types::{CertificateDer, UnixTime},
    server::danger::{ClientCertVerified, ClientCertVerifier},
};
use std::{fmt, sync::Arc};
use tokio_rustls::TlsAcceptor;

/// How connections to a port are secured. Texts are PEM.
#[derive(Clone)]
pub struct ServerTls {
    pub certificate: Vec<u8>,
    pub key: Vec<u8>,
    /// Which clients are accepted; `None` accepts everyone who reaches the port.
    pub clients: Option<Clients>,
    pub limits: Limits,
}

/// Which clients are accepted.
#[derive(Clone)]
pub struct Clients {
    /// PEM: the CA that signs client certificates.
    pub authority: Vec<u8>,
    pub rule: ClientRule,
}

/// Which certificates of the CA are accepted.
#[derive(Clone)]
pub enum ClientRule {
    /// All of them: the CA signs only for users of this store.
    Any,
    Only(Admits),
}

/// Decides whether the owner of a DER certificate is accepted, or returns the reason why not.
pub type Admits = Arc<dyn Fn(&[u8]) -> Result<(), String> + Send + Sync>;

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot use the serving certificate: {0}")]
    Certificate(String),
    #[error("cannot read the client CA certificate: {0}")]
    Authority(String),
    #[error("cannot use the client CA certificate")]
    Verifier(#[from] VerifierError),
    #[error(transparent)]
    Settings(#[from] rustls::Error),
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTls")
            .field("requires_certificates", &self.clients.is_some())
            .finish_non_exhaustive()
    }
}

impl ServerTls {
    pub(super) fn acceptor(&self) -> Result<TlsAcceptor, TlsError> {
        let serving = certified_key(&self.certificate, &self.key).map_err(TlsError::Certificate)?;
        let verifier = self.clients.as_ref().map(Clients::verifier).transpose()?;
        let settings = requiring_certificates(serving, verifier, &self.limits)?;
        Ok(TlsAcceptor::from(Arc::new(settings)))
    }
}

impl Clients {
    fn verifier(&self) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
        let authorities = certificates(&self.authority).map_err(TlsError::Authority)?;
        let signed = signed_by(&authorities)?;
        match &self.rule {
            ClientRule::Any => Ok(signed),
            ClientRule::Only(admits) => Ok(Arc::new(Admitted {
                signed,
                admits: admits.clone(),
            })),
        }
    }
}

/// Accepts the clients of the CA for which a function returns `Ok`.
struct Admitted {
    signed: Arc<dyn ClientCertVerifier>,
    admits: Admits,
}

impl fmt::Debug for Admitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admitted")
            .field("signed", &self.signed)
            .finish_non_exhaustive()
    }
}

impl ClientCertVerifier for Admitted {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.signed.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        own: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        let verified = self.signed.verify_client_cert(own, intermediates, now)?;
        (self.admits)(own).map_err(|reason| {
            tracing::warn!(reason, "client certificate rejected on the etcd port");
            rustls::CertificateError::ApplicationVerificationFailure
        })?;
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signed
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signed
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signed.supported_verify_schemes()
    }
}
