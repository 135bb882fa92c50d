//! What is in the secret of a bootstrap token. Pure.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use coracle_api::Value;
use coracle_api::time::{Time, Timestamp};

/// When a token ceases to be valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiration {
    /// It does not.
    Never,
    /// At this time.
    At(Timestamp),
    /// Its time cannot be read: it counts as expired.
    Unreadable,
}

impl Expiration {
    /// Whether it has.
    pub fn is_over(self, now: Timestamp) -> bool {
        match self {
            Expiration::Never => false,
            Expiration::At(at) => at <= now,
            Expiration::Unreadable => true,
        }
    }
}

/// The expiration of a token.
pub fn expiration(secret: &Value) -> Expiration {
    match entry(secret, "expiration").as_str() {
        "" => Expiration::Never,
        text => Time::parse(text).map_or(Expiration::Unreadable, |time| Expiration::At(time.0)),
    }
}

/// A token that signs: its public and its secret part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub id: String,
    pub secret: String,
}

/// The token of a secret, if it may sign, whether it has expired or not.
pub fn signing_token(object: &Value) -> Option<Token> {
    let (id, secret) = (entry(object, "token-id"), entry(object, "token-secret"));
    let is_named_so = object.meta().name() == format!("bootstrap-token-{id}");
    let signs = entry(object, "usage-bootstrap-signing") == "true";
    (is_id(&id) && is_named_so && !secret.is_empty() && signs).then_some(Token { id, secret })
}

fn is_id(id: &str) -> bool {
    id.len() == 6
        && id
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

/// An entry of the data as text; empty: there is none.
fn entry(secret: &Value, name: &str) -> String {
    let text = secret.at(&["data", name]).and_then(Value::as_str);
    let bytes = STANDARD
        .decode(text.unwrap_or_default())
        .unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
pub(super) mod tests {
    use coracle_api::codec::yaml;

    use super::*;

    /// The secret `bootstrap-token-NAME` with these entries.
    pub(in super::super) fn secret(name: &str, entries: &[(&str, &str)]) -> Value {
        let data = entries
            .iter()
            .map(|(name, text)| format!("{name}: {}", STANDARD.encode(text)));
        let data = data.collect::<Vec<_>>().join(", ");
        let text = format!("{{metadata: {{name: bootstrap-token-{name}}}, data: {{{data}}}}}");
        yaml::decode(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_token_that_does_not_say_when_it_ends_never_does() {
        let now = Time::parse("2026-01-01T00:00:00Z").unwrap().0;
        let check = |text: Option<&str>, expected: bool| {
            let entries: Vec<_> = text.iter().map(|text| ("expiration", *text)).collect();
            assert_eq!(
                expiration(&secret("abcdef", &entries)).is_over(now),
                expected,
                "{text:?}"
            );
        };
        check(None, false);
        check(Some(""), false);
        check(Some("2026-01-01T00:00:01Z"), false);
        check(Some("2026-01-01T01:00:01+01:00"), false);
        check(Some("2026-01-01T00:00:00Z"), true);
        check(Some("2025-12-31T23:59:59Z"), true);
        check(Some("tomorrow"), true);
    }

    #[test]
    fn only_complete_tokens_that_may_sign_do() {
        let good = [
            ("token-id", "abcdef"),
            ("token-secret", "0123456789abcdef"),
            ("usage-bootstrap-signing", "true"),
        ];
        let check = |name: &str, other: Option<(&str, &str)>, expected: bool| {
            let entries = good.map(|(key, text)| match other {
                Some((changed, text)) if changed == key => (key, text),
                _ => (key, text),
            });
            let found = signing_token(&secret(name, &entries));
            assert_eq!(found.is_some(), expected, "{name} {other:?}");
        };

        check("abcdef", None, true);
        check("fedcba", None, false);
        check("ABCDEF", Some(("token-id", "ABCDEF")), false);
        check("abcde", Some(("token-id", "abcde")), false);
        check("", Some(("token-id", "")), false);
        check("abcdef", Some(("token-secret", "")), false);
        check("abcdef", Some(("usage-bootstrap-signing", "True")), false);
        check("abcdef", Some(("usage-bootstrap-signing", "")), false);
    }
}
