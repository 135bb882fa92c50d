//! Whether a certificate and a key match, with the error texts of Go's TLS.
//!
//! A secret with a pair that does not match is stored with a warning.

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys};
use x509_parser::prelude::{FromDer, X509Certificate};

/// What is wrong with the pair; none if it matches.
pub(super) fn fault(certificates: &[u8], key: &[u8]) -> Option<String> {
    check(certificates, key).err()
}

fn check(certificates: &[u8], key: &[u8]) -> Result<(), String> {
    let found = labels(certificates);
    if !found.iter().any(|label| label == "CERTIFICATE") {
        return Err(match found.as_slice() {
            [] => "tls: failed to find any PEM data in certificate input".to_owned(),
            [only] if only.ends_with("PRIVATE KEY") => "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched".to_owned(),
            several => format!(
                "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the following types: [{}]",
                several.join(" ")
            ),
        });
    }

    let found = labels(key);
    if !found
        .iter()
        .any(|label| label == "PRIVATE KEY" || label.ends_with(" PRIVATE KEY"))
    {
        return Err(match found.as_slice() {
            [] => "tls: failed to find any PEM data in key input".to_owned(),
            [only] if only == "CERTIFICATE" => {
                "tls: found a certificate rather than a key in the PEM for the private key"
                    .to_owned()
            }
            several => format!(
                "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM blocks of the following types: [{}]",
                several.join(" ")
            ),
        });
    }

    belong_together(certificates, key)
}

fn belong_together(certificates: &[u8], key: &[u8]) -> Result<(), String> {
    let malformed = || "x509: malformed certificate".to_owned();
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(certificates)
        .collect::<Result<_, _>>()
        .map_err(|_| malformed())?;
    let leaf = chain.first().ok_or_else(malformed)?;
    X509Certificate::from_der(leaf).map_err(|_| malformed())?;

    let unreadable = || "tls: failed to parse private key".to_owned();
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| unreadable())?;
    let provider = CryptoProvider::get_default().ok_or_else(unreadable)?;
    let key = provider
        .key_provider
        .load_private_key(key)
        .map_err(|_| unreadable())?;

    match CertifiedKey::new(chain, key).keys_match() {
        Err(Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
            Err("tls: private key does not match public key".to_owned())
        }
        // Keys that cannot be compared count as a match.
        _ => Ok(()),
    }
}

/// The types of the PEM blocks in a text.
fn labels(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    let opening = |line: &str| {
        Some(
            line.trim_end()
                .strip_prefix("-----BEGIN ")?
                .strip_suffix("-----")?
                .to_owned(),
        )
    };

    let mut labels = Vec::new();
    let mut open: Option<String> = None;
    for line in text.lines() {
        match &open {
            Some(label) if line.trim_end() == format!("-----END {label}-----") => {
                labels.extend(open.take())
            }
            _ => {
                if let Some(label) = opening(line) {
                    open = Some(label);
                }
            }
        }
    }

    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mismatched_pairs_have_the_error_texts_of_go() {
        let check = |certificates: &str, key: &str, expected: &str| {
            let found = fault(certificates.as_bytes(), key.as_bytes()).unwrap_or_default();
            assert!(found.starts_with(expected), "{found} is not {expected}");
        };

        let block = |label: &str| format!("-----BEGIN {label}-----\nAAAA\n-----END {label}-----\n");
        let (certificate, key) = (block("CERTIFICATE"), block("EC PRIVATE KEY"));
        check(
            "",
            "",
            "tls: failed to find any PEM data in certificate input",
        );

        check(
            &key,
            "",
            "tls: failed to find certificate PEM data in certificate input, but did find a",
        );

        check(
            &(block("A") + &block("B")),
            "",
            "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the following types: [A B]",
        );

        check(
            &certificate,
            "x",
            "tls: failed to find any PEM data in key input",
        );

        check(
            &certificate,
            &certificate,
            "tls: found a certificate rather than a key",
        );

        check(
            &certificate,
            &block("A"),
            "tls: failed to find PEM block with type ending in \"PRIVATE KEY\"",
        );

        check(&certificate, &key, "x509: malformed certificate");
    }
}
