//! A certificate authority: its certificate and key, and signing with them.

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use coracle_api::time::{Time, Timestamp};
use rustls::SignatureScheme;
use rustls::sign::SigningKey;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use x509_parser::extensions::ParsedExtension;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::der;
use super::usage;
use crate::certificates::request::{Names, Request};

/// A certificate authority. Clones share it.
#[derive(Clone)]
pub struct Authority {
    key: Arc<dyn SigningKey>,
    /// Its name, as issuer of what it signs.
    subject: Vec<u8>,
    /// Its key identifier.
    key_id: Option<Vec<u8>>,
    ends_at: Timestamp,
}

/// The key is not printed.
impl fmt::Debug for Authority {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Authority")
            .field("ends_at", &self.ends_at)
            .finish_non_exhaustive()
    }
}

/// Why an authority could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// Its certificate cannot be read.
    #[error("cannot parse the CA certificate")]
    Certificate,
    /// Its key cannot be read.
    #[error("cannot parse the CA key")]
    Key,
}

/// Why a certificate was not signed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignError {
    /// The authority's own certificate has expired.
    #[error("the signer has expired: NotAfter={0}")]
    Expired(String),
    /// The key supports none of the known signature schemes.
    #[error("unsupported CA key type")]
    Key,
    /// An unknown usage.
    #[error("unrecognized usage value: {0:?}")]
    Usage(String),
}

/// The certificate to sign.
pub struct CertificateTemplate<'a> {
    /// The subject and key.
    pub request: &'a Request,
    /// The usages.
    pub usages: &'a [&'a str],
    /// Start of the validity.
    pub not_before: Timestamp,
    /// End of the validity, unless the authority expires before.
    pub not_after: Timestamp,
    /// The serial number.
    pub serial: [u8; 16],
}

impl Authority {
    /// Loads an authority from PEM.
    ///
    /// # Errors
    /// The certificate or the key cannot be parsed.
    pub fn from_pem(certificate: &[u8], key: &[u8]) -> Result<Authority, AuthorityError> {
        let der =
            CertificateDer::from_pem_slice(certificate).map_err(|_| AuthorityError::Certificate)?;
        let (_, read) = X509Certificate::from_der(&der).map_err(|_| AuthorityError::Certificate)?;
        let key_id =
            read.extensions()
                .iter()
                .find_map(|extension| match extension.parsed_extension() {
                    ParsedExtension::SubjectKeyIdentifier(id) => Some(id.0.to_vec()),
                    _ => None,
                });

        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| AuthorityError::Key)?;
        let key = rustls::crypto::ring::sign::any_supported_type(&key)
            .map_err(|_| AuthorityError::Key)?;

        Ok(Authority {
            key,
            subject: read.subject().as_raw().to_vec(),
            key_id,
            ends_at: Timestamp::from_unix(read.validity().not_after.timestamp(), 0),
        })
    }

    /// Signs a certificate and returns it as PEM.
    ///
    /// # Errors
    /// See [`SignError`].
    pub fn sign(
        &self,
        wanted: &CertificateTemplate<'_>,
        now: Timestamp,
    ) -> Result<String, SignError> {
        if now >= self.ends_at {
            return Err(SignError::Expired(Time(self.ends_at).text().to_string()));
        }

        let signer = self.key.choose_scheme(SCHEMES).ok_or(SignError::Key)?;
        let algorithm = algorithm(signer.scheme()).ok_or(SignError::Key)?;

        let not_after = wanted.not_after.min(self.ends_at);
        let body = der::sequence(&[
            // Version 3.
            &der::value(0xa0, &der::unsigned(&[2])),
            &der::unsigned(&wanted.serial),
            &algorithm,
            &self.subject,
            &der::sequence(&[&moment(wanted.not_before), &moment(not_after)]),
            &wanted.request.subject,
            &wanted.request.key,
            &der::value(0xa3, &der::value(0x30, &self.extensions(wanted)?)),
        ]);
        let signature = signer.sign(&body).map_err(|_| SignError::Key)?;

        Ok(pem(&der::sequence(&[
            &body,
            &algorithm,
            &der::bits(&signature, 0),
        ])))
    }

    fn extensions(&self, wanted: &CertificateTemplate<'_>) -> Result<Vec<u8>, SignError> {
        let (key_usage, purposes) = usage::encode(wanted.usages).map_err(SignError::Usage)?;
        let mut all = Vec::new();
        if let Some(key_usage) = key_usage {
            all.extend(extension(&[0x55, 0x1d, 0x0f], true, &key_usage));
        }
        if let Some(purposes) = purposes {
            all.extend(extension(&[0x55, 0x1d, 0x25], false, &purposes));
        }

        // Not a certificate authority.
        all.extend(extension(&[0x55, 0x1d, 0x13], true, &der::sequence(&[])));

        if let Some(id) = &self.key_id {
            all.extend(extension(
                &[0x55, 0x1d, 0x23],
                false,
                &der::sequence(&[&der::value(0x80, id)]),
            ));
        }

        if wanted.request.names != Names::default() {
            all.extend(extension(
                &[0x55, 0x1d, 0x11],
                false,
                &other_names(&wanted.request.names),
            ));
        }

        Ok(all)
    }
}

/// In order of preference.
const SCHEMES: &[SignatureScheme] = &[
    SignatureScheme::ECDSA_NISTP256_SHA256,
    SignatureScheme::ECDSA_NISTP384_SHA384,
    SignatureScheme::ED25519,
    SignatureScheme::RSA_PKCS1_SHA256,
];

fn algorithm(scheme: SignatureScheme) -> Option<Vec<u8>> {
    let ecdsa = |last: u8| {
        der::sequence(&[&der::identifier(&[
            0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, last,
        ])])
    };

    match scheme {
        SignatureScheme::ECDSA_NISTP256_SHA256 => Some(ecdsa(2)),
        SignatureScheme::ECDSA_NISTP384_SHA384 => Some(ecdsa(3)),
        SignatureScheme::ED25519 => Some(der::sequence(&[&der::identifier(&[0x2b, 0x65, 0x70])])),
        SignatureScheme::RSA_PKCS1_SHA256 => {
            let name = der::identifier(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 0x0b]);
            Some(der::sequence(&[&name, &der::value(0x05, &[])]))
        }
        _ => None,
    }
}

fn extension(name: &[u8], is_critical: bool, content: &[u8]) -> Vec<u8> {
    let critical: &[u8] = if is_critical { &der::TRUE } else { &[] };
    der::sequence(&[&der::identifier(name), critical, &der::octets(content)])
}

fn other_names(names: &Names) -> Vec<u8> {
    let text = |tag: u8| move |name: &String| der::value(tag, name.as_bytes());
    let mut all: Vec<Vec<u8>> = names.dns.iter().map(text(0x82)).collect();
    all.extend(names.emails.iter().map(text(0x81)));
    all.extend(names.addresses.iter().map(|address| match address {
        std::net::IpAddr::V4(address) => der::value(0x87, &address.octets()),
        std::net::IpAddr::V6(address) => der::value(0x87, &address.octets()),
    }));
    all.extend(names.uris.iter().map(text(0x86)));
    der::value(0x30, &all.concat())
}

/// Years from 2050 on need `GeneralizedTime`.
fn moment(at: Timestamp) -> Vec<u8> {
    let text: String = Time(at)
        .text()
        .chars()
        .filter(|c| c.is_ascii_digit())
        .collect();
    match &text[..4] < "2050" {
        true => der::value(0x17, format!("{}Z", &text[2..]).as_bytes()),
        false => der::value(0x18, format!("{text}Z").as_bytes()),
    }
}

fn pem(der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<&str> = text
        .as_bytes()
        .chunks(64)
        .map(|line| std::str::from_utf8(line).expect("base64 is ASCII"))
        .collect();
    format!(
        "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
        lines.join("\n")
    )
}
