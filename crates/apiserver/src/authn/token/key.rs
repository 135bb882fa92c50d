//! Keys that sign tokens and keys that verify them, from PEM files: RSA, and EC on P-256 and P-384.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use coracle_api::{Map, Value};
use ring::digest;
use ring::signature::{self, UnparsedPublicKey};
use rustls::SignatureScheme;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::{PemObject, SectionKind};
use x509_parser::der_parser::asn1_rs::FromDer;
use x509_parser::oid_registry::{
    OID_EC_P256, OID_KEY_TYPE_EC_PUBLIC_KEY, OID_NIST_EC_P384, OID_PKCS1_RSAENCRYPTION,
};
use x509_parser::prelude::X509Certificate;
use x509_parser::public_key::PublicKey;
use x509_parser::x509::SubjectPublicKeyInfo;

#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("no key found in PEM data")]
    None,
    #[error("cannot parse key: {0}")]
    Unreadable(String),
    #[error("unsupported key type: use RSA or EC (P-256 or P-384)")]
    Unsupported,
}

/// How tokens are signed. A key has one algorithm: a token does not choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Algorithm {
    Rs256,
    Es256,
    Es384,
}

impl Algorithm {
    pub(super) fn name(self) -> &'static str {
        match self {
            Algorithm::Rs256 => "RS256",
            Algorithm::Es256 => "ES256",
            Algorithm::Es384 => "ES384",
        }
    }

    fn scheme(self) -> SignatureScheme {
        match self {
            Algorithm::Rs256 => SignatureScheme::RSA_PKCS1_SHA256,
            Algorithm::Es256 => SignatureScheme::ECDSA_NISTP256_SHA256,
            Algorithm::Es384 => SignatureScheme::ECDSA_NISTP384_SHA384,
        }
    }
}

/// Verifies.
#[derive(Clone, Debug)]
pub struct VerifyingKey {
    pub(super) id: String,
    pub(super) algorithm: Algorithm,
    /// As its algorithm takes it: a point, or modulus and exponent in DER.
    bytes: Vec<u8>,
    /// As a JSON Web Key.
    pub(super) shown: Value,
}

impl VerifyingKey {
    /// Every key in a file; of private keys and certificates, the public one.
    pub fn read(pem: &[u8]) -> Result<Vec<VerifyingKey>, KeyError> {
        let mut keys = Vec::new();
        for section in <(SectionKind, Vec<u8>)>::pem_slice_iter(pem) {
            let (kind, der) = section.map_err(|error| KeyError::Unreadable(error.to_string()))?;
            match kind {
                SectionKind::PublicKey => keys.push(VerifyingKey::of(&der)?),
                SectionKind::Certificate => {
                    let (_, certificate) = X509Certificate::from_der(&der).map_err(unreadable)?;
                    keys.push(VerifyingKey::of(certificate.public_key().raw)?);
                }
                SectionKind::PrivateKey
                | SectionKind::RsaPrivateKey
                | SectionKind::EcPrivateKey => {
                    keys.push(signer(kind, der)?.1);
                }
                _ => {}
            }
        }

        if keys.is_empty() {
            Err(KeyError::None)
        } else {
            Ok(keys)
        }
    }

    /// Of the DER of a SubjectPublicKeyInfo.
    fn of(der: &[u8]) -> Result<VerifyingKey, KeyError> {
        let (_, info) = SubjectPublicKeyInfo::from_der(der).map_err(unreadable)?;
        let bytes = info.subject_public_key.data.to_vec();
        let curve = info
            .algorithm
            .parameters
            .as_ref()
            .and_then(|curve| curve.as_oid().ok());

        let algorithm = if info.algorithm.algorithm == OID_PKCS1_RSAENCRYPTION {
            Algorithm::Rs256
        } else if info.algorithm.algorithm != OID_KEY_TYPE_EC_PUBLIC_KEY {
            return Err(KeyError::Unsupported);
        } else if curve == Some(OID_EC_P256) {
            Algorithm::Es256
        } else if curve == Some(OID_NIST_EC_P384) {
            Algorithm::Es384
        } else {
            return Err(KeyError::Unsupported);
        };

        let id = URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, der));
        let shown = shown(&id, algorithm, &info)?;

        Ok(VerifyingKey {
            id,
            algorithm,
            bytes,
            shown,
        })
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let algorithm: &dyn signature::VerificationAlgorithm = match self.algorithm {
            Algorithm::Rs256 => &signature::RSA_PKCS1_2048_8192_SHA256,
            Algorithm::Es256 => &signature::ECDSA_P256_SHA256_FIXED,
            Algorithm::Es384 => &signature::ECDSA_P384_SHA384_FIXED,
        };
        UnparsedPublicKey::new(algorithm, &self.bytes)
            .verify(message, signature)
            .is_ok()
    }
}

fn shown(
    id: &str,
    algorithm: Algorithm,
    info: &SubjectPublicKeyInfo<'_>,
) -> Result<Value, KeyError> {
    let mut key = Map::new();
    let encoded = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    match info.parsed().map_err(unreadable)? {
        PublicKey::RSA(rsa) => {
            let trimmed = |bytes: &[u8]| {
                encoded(&bytes[bytes.iter().take_while(|byte| **byte == 0).count()..])
            };
            key.insert("kty", "RSA");
            key.insert("n", trimmed(rsa.modulus));
            key.insert("e", trimmed(rsa.exponent));
        }
        PublicKey::EC(point) => {
            let coordinates = point.data().get(1..).ok_or(KeyError::Unsupported)?;
            let (x, y) = coordinates.split_at(coordinates.len() / 2);

            key.insert("kty", "EC");
            key.insert(
                "crv",
                if algorithm == Algorithm::Es256 {
                    "P-256"
                } else {
                    "P-384"
                },
            );

            key.insert("x", encoded(x));
            key.insert("y", encoded(y));
        }
        _ => return Err(KeyError::Unsupported),
    }

    key.insert("use", "sig");
    key.insert("kid", id);
    key.insert("alg", algorithm.name());

    Ok(Value::Object(key))
}

/// Signs.
pub struct SigningKey {
    pub(super) public: VerifyingKey,
    key: Arc<dyn rustls::sign::SigningKey>,
}

impl SigningKey {
    /// The first private key in a file.
    pub fn read(pem: &[u8]) -> Result<SigningKey, KeyError> {
        for section in <(SectionKind, Vec<u8>)>::pem_slice_iter(pem) {
            let (kind, der) = section.map_err(|error| KeyError::Unreadable(error.to_string()))?;
            if matches!(
                kind,
                SectionKind::PrivateKey | SectionKind::RsaPrivateKey | SectionKind::EcPrivateKey
            ) {
                let (key, public) = signer(kind, der)?;
                return Ok(SigningKey { public, key });
            }
        }
        Err(KeyError::None)
    }

    pub fn public(&self) -> &VerifyingKey {
        &self.public
    }

    pub(super) fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let algorithm = self.public.algorithm;
        let signature = self
            .key
            .choose_scheme(&[algorithm.scheme()])?
            .sign(message)
            .ok()?;
        match algorithm {
            Algorithm::Rs256 => Some(signature),
            Algorithm::Es256 => joined(&signature, 32),
            Algorithm::Es384 => joined(&signature, 48),
        }
    }
}

type Signer = (Arc<dyn rustls::sign::SigningKey>, VerifyingKey);

fn signer(kind: SectionKind, der: Vec<u8>) -> Result<Signer, KeyError> {
    let der = PrivateKeyDer::from_pem(kind, der).ok_or(KeyError::Unsupported)?;
    let key = rustls::crypto::ring::sign::any_supported_type(&der);
    let key = key.map_err(|error| KeyError::Unreadable(error.to_string()))?;
    let public = VerifyingKey::of(key.public_key().ok_or(KeyError::Unsupported)?.as_ref())?;
    Ok((key, public))
}

/// The two numbers of an ECDSA signature in DER, side by side, as tokens have them.
fn joined(der: &[u8], size: usize) -> Option<Vec<u8>> {
    // SEQUENCE { INTEGER r, INTEGER s }, each shorter than 128 bytes.
    let mut rest = der.strip_prefix(&[0x30])?.get(1..)?;
    let mut out = Vec::with_capacity(2 * size);
    for _ in 0..2 {
        let length = usize::from(*rest.strip_prefix(&[0x02])?.first()?);
        let number = rest.get(2..2 + length)?;
        rest = rest.get(2 + length..)?;
        let number = &number[number.iter().take_while(|byte| **byte == 0).count()..];
        out.resize(out.len() + size.checked_sub(number.len())?, 0);
        out.extend_from_slice(number);
    }

    Some(out)
}

fn unreadable(error: impl std::fmt::Display) -> KeyError {
    KeyError::Unreadable(error.to_string())
}
