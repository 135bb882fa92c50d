//! The proof that a peer holds the key of its certificate, for peers whose certificate is not
//! verified in the handshake.
//!
//! The library refuses some certificates that others accept, as those of X.509 version 1. Where
//! only the key counts, it is taken out of the certificate. What is no certificate at all is
//! refused, as Go's library does.

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{
    WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
    verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::{CertificateDer, SubjectPublicKeyInfoDer};
use rustls::{CertificateError, DigitallySignedStruct, Error};
use webpki::RawPublicKeyEntity;
use x509_parser::prelude::{FromDer, X509Certificate};

pub(super) fn verify_tls12(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signature: &DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, Error> {
    match verify_tls12_signature(message, certificate, signature, algorithms) {
        Err(Error::InvalidCertificate(CertificateError::BadSignature)) => bad_signature(),
        Err(Error::InvalidCertificate(_)) => {
            let key = key_of(certificate)?;
            let key = RawPublicKeyEntity::try_from(&key)
                .map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))?;

            let mut scheme = algorithms
                .mapping
                .iter()
                .filter(|(scheme, _)| *scheme == signature.scheme)
                .flat_map(|(_, algorithms)| algorithms.iter());
            let is_valid = scheme.any(|algorithm| {
                key.verify_signature(*algorithm, message, signature.signature())
                    .is_ok()
            });
            match is_valid {
                true => Ok(HandshakeSignatureValid::assertion()),
                false => bad_signature(),
            }
        }
        result => result,
    }
}

pub(super) fn verify_tls13(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signature: &DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, Error> {
    match verify_tls13_signature(message, certificate, signature, algorithms) {
        Err(Error::InvalidCertificate(CertificateError::BadSignature)) => bad_signature(),
        Err(Error::InvalidCertificate(_)) => {
            let key = key_of(certificate)?;
            verify_tls13_signature_with_raw_key(message, &key, signature, algorithms)
        }
        result => result,
    }
}

fn bad_signature() -> Result<HandshakeSignatureValid, Error> {
    Err(Error::InvalidCertificate(CertificateError::BadSignature))
}

/// The key that a certificate is about.
fn key_of(certificate: &CertificateDer<'_>) -> Result<SubjectPublicKeyInfoDer<'static>, Error> {
    let parsed = X509Certificate::from_der(certificate);
    let (_, parsed) = parsed.map_err(|_| CertificateError::BadEncoding)?;
    Ok(SubjectPublicKeyInfoDer::from(
        parsed.public_key().raw.to_vec(),
    ))
}
