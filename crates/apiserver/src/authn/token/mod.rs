//! Bearer tokens.
//!
//! The token of a request is passed to each token authenticator in turn: the static file, service
//! accounts, bootstrap tokens. The first that knows it wins. A token is valid for its audiences; a
//! request that names none means those of the API server.

mod bootstrap;
mod claims;
mod issuer;
mod jwt;
mod key;
mod service_account;
mod static_file;
mod used;

use std::sync::Arc;

use async_trait::async_trait;
use coracle_api::time::Timestamp;
use http::{HeaderMap, header};

pub use bootstrap::BootstrapTokens;
pub use claims::Bound;
pub use issuer::{Issuer, TokenSpec, kept_token};
pub use key::{KeyError, SigningKey, VerifyingKey};
pub use service_account::ServiceAccountTokens;
pub use static_file::{BadTokenFile, StaticTokens};
pub use used::{LAST_USED, UsedSecrets};

use super::{Authenticator, AuthnResult, Presented, User};
use coracle_kinds::rbac::aggregate;

/// Upstream's error for an unknown token.
const UNKNOWN: &str = "invalid bearer token";

/// The user of a token, and its audiences.
#[derive(Clone, Debug)]
pub struct Recognised {
    pub user: Arc<User>,
    /// Those of the requested audiences that the token has.
    pub audiences: Vec<String>,
}

/// The result of one authenticator.
#[derive(Debug)]
pub enum Finding {
    Known(Recognised),
    /// It is none of theirs.
    Unknown,
    Wrong(String),
}

/// Authenticates one sort of token.
pub trait TokenAuthenticator: Send + Sync {
    /// `audiences` are never empty where the API has any.
    fn find(&self, token: &str, audiences: &[String], now: Timestamp) -> Finding;
}

/// The token authenticators, in upstream's order.
#[derive(Default)]
pub struct Tokens {
    pub known_to: Vec<Box<dyn TokenAuthenticator>>,
    /// The API's own.
    pub audiences: Vec<String>,
    /// Secrets whose tokens were used.
    pub used: Arc<UsedSecrets>,
}

impl Tokens {
    /// The user of the token, or why it is refused.
    pub fn review(
        &self,
        token: &str,
        audiences: &[String],
        now: Timestamp,
    ) -> Result<Recognised, String> {
        let audiences = if audiences.is_empty() {
            &self.audiences
        } else {
            audiences
        };

        let mut wrong = vec![UNKNOWN.to_string()];
        for authenticator in &self.known_to {
            match authenticator.find(token, audiences, now) {
                Finding::Known(found) => {
                    let user = Arc::new(User::clone(&found.user).authenticated());
                    return Ok(Recognised { user, ..found });
                }
                Finding::Unknown => {}
                Finding::Wrong(why) => wrong.push(why),
            }
        }

        Err(aggregate(&wrong))
    }
}

/// For a token that is good for whatever the API is: what is left of the wanted audiences; `None`:
/// nothing.
fn for_the_api(own: &[String], wanted: &[String]) -> Option<Vec<String>> {
    let common: Vec<String> = wanted
        .iter()
        .filter(|audience| own.contains(audience))
        .cloned()
        .collect();
    (!common.is_empty() || own.is_empty()).then_some(common)
}

/// The tokens of requests.
pub struct BearerTokens {
    pub tokens: Arc<Tokens>,
}

#[async_trait]
impl Authenticator for BearerTokens {
    async fn authenticate(&self, presented: &Presented<'_>) -> AuthnResult {
        let Some(token) = token(presented.headers) else {
            return AuthnResult::Unknown;
        };
        match self.tokens.review(token, &[], presented.now) {
            Ok(found) => AuthnResult::Known(found.user),
            Err(why) => AuthnResult::Wrong(why),
        }
    }
}

/// The bearer token of a request. Other schemes (Basic) are ignored, and an empty token is none.
fn token(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(header::AUTHORIZATION)?.to_str().ok()?.trim();
    let mut parts = text.splitn(3, ' ');
    let scheme = parts.next()?;
    parts
        .next()
        .filter(|token| scheme.eq_ignore_ascii_case("bearer") && !token.is_empty())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn check(text: &'static str, expected: Option<&str>) {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, HeaderValue::from_static(text));
        assert_eq!(token(&headers), expected, "{text:?}");
    }

    #[test]
    fn tokens_are_found_as_upstream_finds_them() {
        check("Bearer abc", Some("abc"));
        check(" bEARER abc ", Some("abc"));
        check("Bearer abc def", Some("abc"));
        check("Bearer", None);
        check("Bearer  abc", None);
        check("Basic abc", None);
        assert_eq!(token(&HeaderMap::new()), None);
    }

    #[test]
    fn an_unknown_token_is_refused_with_every_reason_once() {
        struct Fixed(&'static str);
        impl TokenAuthenticator for Fixed {
            fn find(&self, _: &str, _: &[String], _: Timestamp) -> Finding {
                if self.0.is_empty() {
                    Finding::Unknown
                } else {
                    Finding::Wrong(self.0.to_string())
                }
            }
        }

        let review = |says: &[&'static str]| {
            let known_to = says
                .iter()
                .map(|text| Box::new(Fixed(text)) as Box<dyn TokenAuthenticator>);
            let tokens = Tokens {
                known_to: known_to.collect(),
                ..Tokens::default()
            };

            tokens
                .review("x", &[], Timestamp::from_unix(0, 0))
                .unwrap_err()
        };
        assert_eq!(review(&["", ""]), "invalid bearer token");

        assert_eq!(review(&["", "expired"]), "[invalid bearer token, expired]");
    }
}
