//! TLS on a port: our certificate, and which clients are let in.
//!
//! A client shows a certificate of the authority named, and whoever assembles the server says of
//! each such certificate whether its owner may use the store ([`ClientRule`]). Both are checked in
//! the handshake: who is refused never gets as far as HTTP, and hears `access_denied`.

use rustls::{
    DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    pki_types::{CertificateDer, PrivateKeyDer, UnixTime, pem::PemObject},
    server::{
        WebPkiClientVerifier,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
};
use std::{fmt, sync::Arc};
use tokio_rustls::TlsAcceptor;

/// How connections to a port are secured. Texts are PEM.
#[derive(Clone)]
pub struct FaceTls {
    pub certificate: Vec<u8>,
    pub key: Vec<u8>,
    /// Who is let in; without it everybody who reaches the port.
    pub clients: Option<Clients>,
}

/// Which clients are let in.
#[derive(Clone)]
pub struct Clients {
    /// PEM: who signs the certificates that clients have to show.
    pub authority: Vec<u8>,
    pub rule: ClientRule,
}

/// Which certificates of the authority are let in.
#[derive(Clone)]
pub enum ClientRule {
    /// All that the authority signed: it signs for users of this store alone.
    Any,
    Only(Admits),
}

/// Says of a certificate in DER whether its owner is let in, or why not.
pub type Admits = Arc<dyn Fn(&[u8]) -> Result<(), String> + Send + Sync>;

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("the serving certificate cannot be read")]
    Certificate(#[source] rustls::pki_types::pem::Error),
    #[error("the serving key cannot be read")]
    Key(#[source] rustls::pki_types::pem::Error),
    #[error("the authority of clients cannot be read")]
    Authority(#[source] rustls::pki_types::pem::Error),
    #[error("the authority of clients cannot be used")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
    #[error(transparent)]
    Settings(#[from] rustls::Error),
}

impl fmt::Debug for FaceTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaceTls")
            .field("demands_certificates", &self.clients.is_some())
            .finish_non_exhaustive()
    }
}

impl FaceTls {
    pub(super) fn acceptor(&self) -> Result<TlsAcceptor, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let chain = CertificateDer::pem_slice_iter(&self.certificate).collect::<Result<_, _>>();
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(TlsError::Key)?;

        let settings =
            ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let settings = match &self.clients {
            Some(clients) => settings.with_client_cert_verifier(clients.verifier()?),
            None => settings.with_no_client_auth(),
        };
        let mut settings = settings.with_single_cert(chain.map_err(TlsError::Certificate)?, key)?;
        settings.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];

        Ok(TlsAcceptor::from(Arc::new(settings)))
    }
}

impl Clients {
    fn verifier(&self) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&self.authority) {
            roots.add(certificate.map_err(TlsError::Authority)?)?;
        }

        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let signed =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build()?;
        match &self.rule {
            ClientRule::Any => Ok(signed),
            ClientRule::Only(admits) => Ok(Arc::new(Admitted {
                signed,
                admits: admits.clone(),
            })),
        }
    }
}

/// Lets in those of the authority's clients whom a function takes.
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
            tracing::warn!(reason, "client refused on the etcd port");
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
