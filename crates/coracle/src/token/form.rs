//! The text of a token: `ID.SECRET`, as everywhere, and for nodes that join `ID.SECRET@sha256:HASH`,
//! with the hash by which they recognize the CA of the cluster.

use std::fmt;

use coracle_base::tls::certificates;
use ring::digest::{SHA256, digest};
use x509_parser::prelude::{FromDer, X509Certificate};

/// A token with which a node joins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JoinToken {
    pub(crate) id: String,
    pub(crate) secret: String,
    /// The SHA-256 of the CA's public key, in hexadecimal.
    pub(crate) authority: String,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadToken {
    #[error("a token is [a-z0-9]{{6}}.[a-z0-9]{{16}}")]
    Form,
    #[error(
        "the token has no hash of the cluster's CA; use the whole token that `coracle token create` printed, as \
         ID.SECRET@sha256:HASH"
    )]
    NoHash,
    #[error("the hash of the token's CA must be sha256: and 64 hexadecimal digits")]
    Hash,
    #[error("the CA: {0}")]
    Authority(String),
}

impl JoinToken {
    pub(crate) fn parse(text: &str) -> Result<JoinToken, BadToken> {
        let (token, hash) = text.trim().split_once('@').ok_or(BadToken::NoHash)?;
        let (id, secret) = parts(token)?;
        let hash = hash.strip_prefix("sha256:").ok_or(BadToken::Hash)?;
        let is_hash = hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hash
            .then(|| JoinToken {
                id,
                secret,
                authority: hash.to_ascii_lowercase(),
            })
            .ok_or(BadToken::Hash)
    }

    /// What is sent to the API server.
    pub(crate) fn bearer(&self) -> String {
        format!("{}.{}", self.id, self.secret)
    }
}

impl fmt::Display for JoinToken {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}@sha256:{}", self.bearer(), self.authority)
    }
}

/// The public and the secret part of a token.
pub(super) fn parts(token: &str) -> Result<(String, String), BadToken> {
    let (id, secret) = token.split_once('.').ok_or(BadToken::Form)?;
    let is_plain = |text: &str, length: usize| {
        text.len() == length
            && text
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    match is_plain(id, 6) && is_plain(secret, 16) {
        true => Ok((id.to_owned(), secret.to_owned())),
        false => Err(BadToken::Form),
    }
}

/// The public part of a token in any form, or of itself.
pub(super) fn id(text: &str) -> Result<String, BadToken> {
    let token = text.split('@').next().unwrap_or_default();
    match token.contains('.') {
        true => parts(token).map(|(id, _)| id),
        false => parts(&format!("{token}.0123456789abcdef")).map(|(id, _)| id),
    }
}

/// The hash of the public key of a CA, as kubeadm's `--discovery-token-ca-cert-hash` has it.
pub(crate) fn authority_hash(pem: &[u8]) -> Result<String, String> {
    let chain = certificates(pem)?;
    let first = chain.first().ok_or("no certificate")?;
    let (_, certificate) = X509Certificate::from_der(first).map_err(|error| error.to_string())?;
    let hash = digest(&SHA256, certificate.public_key().raw);
    Ok(hash
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_as_it_was_written() {
        let hash = "0123456789abcdef".repeat(4);
        let text = format!("abcdef.0123456789abcdef@sha256:{hash}");
        let token = JoinToken::parse(&text).unwrap();
        assert_eq!(token.to_string(), text);
        assert_eq!(token.bearer(), "abcdef.0123456789abcdef");
        assert_eq!(id(&text).unwrap(), "abcdef");
        assert_eq!(id("abcdef").unwrap(), "abcdef");
    }

    #[test]
    fn other_texts_are_refused() {
        let check = |text: &str, expected: BadToken| {
            assert_eq!(JoinToken::parse(text), Err(expected), "{text}");
        };
        check("abcdef.0123456789abcdef", BadToken::NoHash);
        check("abcdef.0123456789abcdef@", BadToken::Hash);
        check("abcdef.0123456789abcdef@sha256:12", BadToken::Hash);
        check("abcdef.0123456789abcde@sha256:12", BadToken::Form);
        check("ABCDEF.0123456789abcdef@sha256:12", BadToken::Form);
        assert_eq!(id("abcde"), Err(BadToken::Form));
    }
}
