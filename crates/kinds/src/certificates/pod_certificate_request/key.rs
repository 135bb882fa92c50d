//! The key of a request: in a certificate signing request, or by itself with a proof that the
//! requester has it.

use coracle_api::Path;
use coracle_api::field_error::FieldError;
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1beta1::PodCertificateRequestSpec;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P384_SHA256_ASN1, ED25519, RSA_PSS_2048_8192_SHA256,
    UnparsedPublicKey, VerificationAlgorithm,
};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::FromDer;
use x509_parser::public_key::PublicKey;
use x509_parser::x509::SubjectPublicKeyInfo;

use super::without_value;
use crate::strategy::{Errors, SPEC};

const LONGEST: usize = 10 << 10;

const UNKNOWN: &str = "unknown public key type; supported types are Ed25519, ECDSA, and RSA";
const NOT_A_REQUEST: &str = "must be a valid PKCS#10 CSR";

/// A kind of key, as far as there are rules about it.
enum Kind {
    Ed25519,
    P256,
    P384,
    P521,
    OtherCurve,
    /// With the length of its modulus in bits.
    Rsa(usize),
}

impl Kind {
    fn of(key: &SubjectPublicKeyInfo<'_>) -> Option<Kind> {
        let algorithm = &key.algorithm;
        Some(match algorithm.algorithm.to_id_string().as_str() {
            "1.3.101.112" => Kind::Ed25519,
            "1.2.840.10045.2.1" => {
                let curve = algorithm.parameters.as_ref()?.as_oid().ok()?;
                match curve.to_id_string().as_str() {
                    "1.2.840.10045.3.1.7" => Kind::P256,
                    "1.3.132.0.34" => Kind::P384,
                    "1.3.132.0.35" => Kind::P521,
                    _ => Kind::OtherCurve,
                }
            }
            "1.2.840.113549.1.1.1" => match key.parsed().ok()? {
                PublicKey::RSA(key) => Kind::Rsa(key.key_size()),
                _ => return None,
            },
            _ => return None,
        })
    }
}

pub(super) fn validate(spec: &PodCertificateRequestSpec, errors: &mut Errors) {
    let none = ByteString::default();
    let request = &spec.stub_pkc_s10_request;
    let key = spec.pkix_public_key.as_ref().unwrap_or(&none);
    let proof = spec.proof_of_possession.as_ref().unwrap_or(&none);

    match (request.0.is_empty(), key.0.is_empty(), proof.0.is_empty()) {
        (false, true, true) => validate_request(&request.0, errors),
        (true, false, false) => validate_key(spec, &key.0, &proof.0, errors),
        _ => {
            let why = "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set";
            errors.push(without_value(&SPEC, why));
        }
    }
}

fn validate_request(der: &[u8], errors: &mut Errors) {
    let at = SPEC.field("stubPKCS10Request");
    if der.len() > LONGEST {
        return errors.push(FieldError::too_long(&at, LONGEST));
    }
    let Ok((_, request)) = X509CertificationRequest::from_der(der) else {
        return errors.push(without_value(&at, NOT_A_REQUEST));
    };

    let key = &request.certification_request_info.subject_pki;
    let Some(kind) = Kind::of(key) else {
        return errors.push(without_value(&at, UNKNOWN));
    };
    let supported = "elliptic public keys must use curve P256, P384, or P521";
    if !validate_kind(&kind, supported, &at, errors) {
        return;
    }
    if request.verify_signature().is_err() {
        errors.push(without_value(&at, "invalid signature"));
    }
}

fn validate_key(spec: &PodCertificateRequestSpec, key: &[u8], proof: &[u8], errors: &mut Errors) {
    let (at, place) = (SPEC.field("pkixPublicKey"), SPEC.field("proofOfPossession"));
    for (bytes, at) in [(key, &at), (proof, &place)] {
        if bytes.len() > LONGEST {
            return errors.push(FieldError::too_long(at, LONGEST));
        }
    }

    let Ok((_, key)) = SubjectPublicKeyInfo::from_der(key) else {
        let why = "must be a valid PKIX-serialized public key";
        return errors.push(without_value(&at, why));
    };
    let Some(kind) = Kind::of(&key) else {
        return errors.push(without_value(&at, UNKNOWN));
    };
    let supported = "elliptic public keys must use curve P256 or P384";
    if !validate_kind(&kind, supported, &at, errors) {
        return;
    }

    let algorithm: &dyn VerificationAlgorithm = match kind {
        Kind::Ed25519 => &ED25519,
        Kind::P256 => &ECDSA_P256_SHA256_ASN1,
        Kind::P384 => &ECDSA_P384_SHA256_ASN1,
        Kind::Rsa(_) => &RSA_PSS_2048_8192_SHA256,
        Kind::P521 | Kind::OtherCurve => {
            let why = "proofs with keys of this curve cannot be verified; use stubPKCS10Request";
            return errors.push(without_value(&place, why));
        }
    };
    let public = UnparsedPublicKey::new(algorithm, &key.subject_public_key.data);
    if public.verify(spec.pod_uid.as_bytes(), proof).is_err() {
        let why = "could not verify proof-of-possession signature";
        errors.push(without_value(&place, why));
    }
}

fn validate_kind(kind: &Kind, curves: &str, at: &Path<'_>, errors: &mut Errors) -> bool {
    match kind {
        Kind::OtherCurve => errors.push(FieldError::invalid_str(at, "curve", curves)),
        Kind::Rsa(bits) if *bits != 3072 && *bits != 4096 => {
            let found = format!("{bits}-bit modulus");
            let why = "RSA keys must have modulus size 3072 or 4096";
            errors.push(FieldError::invalid_str(at, &found, why));
        }
        _ => return true,
    }
    false
}

/// The public key that a certificate must be issued to, as its DER.
pub(super) fn requested(spec: &PodCertificateRequestSpec) -> Option<Vec<u8>> {
    let request = &spec.stub_pkc_s10_request.0;
    if !request.is_empty() {
        let (_, request) = X509CertificationRequest::from_der(request).ok()?;
        return Some(request.certification_request_info.subject_pki.raw.to_vec());
    }
    spec.pkix_public_key.as_ref().map(|key| key.0.clone())
}
