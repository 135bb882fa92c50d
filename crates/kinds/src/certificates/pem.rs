//! Certificates and certificate signing requests in PEM: what is wrong with one, with Go's error
//! texts where it has any.

use rustls::pki_types::pem::{PemObject, SectionKind};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::{FromDer, X509Certificate};

/// A PEM block: its type and its content.
struct Block(SectionKind, Vec<u8>);

impl PemObject for Block {
    fn from_pem(kind: SectionKind, der: Vec<u8>) -> Option<Block> {
        Some(Block(kind, der))
    }
}

/// What is wrong with a request; none if it is signed with the requester's key.
pub(super) fn request_fault(pem: &[u8]) -> Option<String> {
    let block = Block::pem_slice_iter(pem).next().and_then(Result::ok);
    let Some(Block(SectionKind::Csr, der)) = block else {
        return Some("PEM block type must be CERTIFICATE REQUEST".to_owned());
    };
    let Ok((_, request)) = X509CertificationRequest::from_der(&der) else {
        return Some("asn1: structure error: not a certificate request".to_owned());
    };
    request
        .verify_signature()
        .err()
        .map(|_| "x509: the signature of the request is not right".to_owned())
}

/// What is wrong with certificates.
pub(super) fn certificates_fault(pem: &[u8]) -> Option<String> {
    let mut count = 0;
    for block in Block::pem_slice_iter(pem) {
        let Ok(Block(kind, der)) = block else { break };
        if kind != SectionKind::Certificate {
            let found = String::from_utf8_lossy(label(kind)).into_owned();
            return Some(format!(
                "only CERTIFICATE PEM blocks are allowed, found {found:?}"
            ));
        }

        if X509Certificate::from_der(&der).is_err() {
            return Some("x509: malformed certificate".to_owned());
        }

        count += 1;
    }

    (count == 0).then(|| "must contain at least one CERTIFICATE PEM block".to_owned())
}

fn label(kind: SectionKind) -> &'static [u8] {
    match kind {
        SectionKind::Certificate => b"CERTIFICATE",
        SectionKind::PublicKey => b"PUBLIC KEY",
        SectionKind::RsaPrivateKey => b"RSA PRIVATE KEY",
        SectionKind::PrivateKey => b"PRIVATE KEY",
        SectionKind::EcPrivateKey => b"EC PRIVATE KEY",
        SectionKind::Crl => b"X509 CRL",
        SectionKind::Csr => b"CERTIFICATE REQUEST",
        SectionKind::EchConfigList => b"ECHCONFIG",
        _ => b"",
    }
}
