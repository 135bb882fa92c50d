//! JSON Web Tokens: three parts, of which the last signs the others.
//!
//! The header does not choose: a key verifies with its own algorithm, and a token that names
//! another one (or `none`) is refused before anything is computed.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use coracle_api::codec::json;
use coracle_api::{Map, Value};

use super::key::{SigningKey, VerifyingKey};

/// Upstream's error for a wrong signature.
const BAD_SIGNATURE: &str = "go-jose/go-jose: error in cryptographic primitive";

/// A parsed token, not verified yet.
pub(super) struct Unverified<'t> {
    signed: &'t str,
    signature: Vec<u8>,
    algorithm: String,
    key_id: String,
    claims: Map,
}

impl<'t> Unverified<'t> {
    /// `None`: it is no such token.
    pub(super) fn parse(token: &'t str) -> Option<Unverified<'t>> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;

        let object = |part: &str| match json::parse(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()? {
            Value::Object(map) => Some(map),
            _ => None,
        };
        let header = object(header)?;

        // What must be understood and is not, is not understood.
        if header.contains_key("crit") {
            return None;
        }

        let text = |name| header.str(name).unwrap_or_default().to_string();
        Some(Unverified {
            signed,
            signature: URL_SAFE_NO_PAD.decode(signature).ok()?,
            algorithm: text("alg"),
            key_id: text("kid"),
            claims: object(claims)?,
        })
    }

    /// The claimed issuer; it selects the authenticator, and proves nothing.
    pub(super) fn issuer(&self) -> &str {
        self.claims.str("iss").unwrap_or_default()
    }

    /// The claims, if one of the keys has signed them.
    pub(super) fn verified(self, keys: &[VerifyingKey]) -> Result<Map, String> {
        let named: Vec<&VerifyingKey> = keys.iter().filter(|key| key.id == self.key_id).collect();
        let candidates = if named.is_empty() {
            keys.iter().collect()
        } else {
            named
        };

        let good = candidates.iter().any(|key| {
            key.algorithm.name() == self.algorithm
                && key.verifies(self.signed.as_bytes(), &self.signature)
        });

        if good {
            Ok(self.claims)
        } else {
            Err(BAD_SIGNATURE.to_string())
        }
    }
}

/// A token with these claims.
pub(super) fn signed(claims: &Map, key: &SigningKey) -> Option<String> {
    let mut header = Map::new();
    header.insert("alg", key.public.algorithm.name());
    header.insert("kid", key.public.id.as_str());
    let part = |map: &Map| URL_SAFE_NO_PAD.encode(json::to_vec(&Value::Object(map.clone())));
    let message = format!("{}.{}", part(&header), part(claims));
    let signature = URL_SAFE_NO_PAD.encode(key.sign(message.as_bytes())?);
    Some(format!("{message}.{signature}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EC: &str = include_str!("testdata/ec.pem");
    const RSA: &str = include_str!("testdata/rsa.pem");

    fn claims() -> Map {
        let mut claims = Map::new();
        claims.insert("iss", "us");
        claims
    }

    fn check(token: &str, keys: &str, good: bool) {
        let keys = VerifyingKey::read(keys.as_bytes()).unwrap();
        let verified = Unverified::parse(token).map(|token| token.verified(&keys));
        assert_eq!(
            verified.is_some_and(|verified| verified.is_ok()),
            good,
            "{token}"
        );
    }

    fn part(text: &str) -> String {
        URL_SAFE_NO_PAD.encode(text)
    }

    #[test]
    fn a_token_is_good_with_the_key_that_signed_it_alone() {
        for (own, other) in [(EC, RSA), (RSA, EC)] {
            let key = SigningKey::read(own.as_bytes()).unwrap();
            let token = signed(&claims(), &key).unwrap();
            check(&token, own, true);
            check(&token, other, false);
            let (rest, signature) = token.rsplit_once('.').unwrap();

            let (header, _) = rest.split_once('.').unwrap();
            check(
                &format!("{header}.{}.{signature}", part(r#"{"iss":"them"}"#)),
                own,
                false,
            );

            check(&format!("{rest}."), own, false);
            check(rest, own, false);
        }
    }

    #[test]
    fn a_token_does_not_choose_its_algorithm() {
        let key = SigningKey::read(RSA.as_bytes()).unwrap();
        let token = signed(&claims(), &key).unwrap();
        let (rest, signature) = token.rsplit_once('.').unwrap();

        let (_, body) = rest.split_once('.').unwrap();
        for header in [
            r#"{"alg":"none"}"#,
            r#"{"alg":"None"}"#,
            r#"{"alg":""}"#,
            r#"{}"#,
            r#"{"alg":"HS256"}"#,
            r#"{"alg":"RS512"}"#,
            r#"{"alg":"RS256","crit":["x"]}"#,
        ] {
            check(&format!("{}.{body}.", part(header)), RSA, false);
            check(&format!("{}.{body}.{signature}", part(header)), RSA, false);
        }

        // The public key taken for a shared secret.
        let message = format!("{}.{body}", part(r#"{"alg":"HS256"}"#));
        for secret in [RSA.as_bytes(), key.public.id.as_bytes()] {
            let tag = ring::hmac::sign(
                &ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret),
                message.as_bytes(),
            );

            check(
                &format!("{message}.{}", URL_SAFE_NO_PAD.encode(tag)),
                RSA,
                false,
            );
        }
    }
}
