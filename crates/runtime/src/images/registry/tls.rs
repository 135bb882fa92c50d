//! TLS to registries: whom to trust, and who we are.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use super::RegistryError;
use super::hosts::TlsSettings;

/// The system's CA bundles on common distributions.
const BUNDLES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The configuration of connections: the system's authorities, those of all registries (`more`), and
/// the settings of one host.
pub(super) fn configure(
    more: &[PathBuf],
    settings: &TlsSettings,
) -> Result<Arc<ClientConfig>, RegistryError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("the provider has ciphers for the default versions");

    let builder = if settings.skip_verify {
        let anyone = Arc::new(Anyone(provider));
        builder.dangerous().with_custom_certificate_verifier(anyone)
    } else {
        let all = more.iter().chain(&settings.authorities);
        builder.with_root_certificates(trusted(all)?)
    };

    let mut config = match &settings.identity {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let failed = |path: &Path, source| RegistryError::Identity {
                path: path.to_owned(),
                source,
            };
            let chain =
                read_certificates(certificate).map_err(|error| failed(certificate, error))?;
            let secret = PrivateKeyDer::from_pem_file(key)
                .map_err(|error| failed(key, io::Error::other(error)))?;
            builder
                .with_client_auth_cert(chain, secret)
                .map_err(|error| failed(certificate, io::Error::other(error)))?
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];

    Ok(Arc::new(config))
}

fn trusted<'a>(more: impl Iterator<Item = &'a PathBuf>) -> Result<RootCertStore, RegistryError> {
    let mut roots = RootCertStore::empty();
    let bundle = BUNDLES.iter().map(PathBuf::from).find(|path| path.exists());
    if let Some(Ok(certificates)) = bundle.map(|path| read_certificates(&path)) {
        // Unusable certificates of a bundle are skipped.
        roots.add_parsable_certificates(certificates);
    }

    for path in more {
        let failed = |source| RegistryError::Authorities {
            path: path.clone(),
            source,
        };

        for certificate in read_certificates(path).map_err(failed)? {
            roots
                .add(certificate)
                .map_err(|error| failed(io::Error::other(error)))?;
        }
    }
    Ok(roots)
}

fn read_certificates(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let found = CertificateDer::pem_file_iter(path).map_err(io::Error::other)?;
    found.collect::<Result<_, _>>().map_err(io::Error::other)
}

/// Trusts every certificate: for `skip_verify`. Signatures are checked all the same.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
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
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
