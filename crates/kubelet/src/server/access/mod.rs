//! Authentication and authorization of the kubelet API.
//!
//! Client certificates are verified here with the cluster's CA; tokens by a TokenReview.
//! Authorization is a SubjectAccessReview. Results are cached for a short time.

mod attributes;
mod cache;
mod certificate;

use std::collections::BTreeMap;
use std::time::Duration;

use coracle_client::{Client, Repeats};
use http::{HeaderMap, Method, header};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};

use cache::Cache;
pub(super) use certificate::Certified;
pub use certificate::{Authorities, BadAuthority};

use self::attributes::{subresources, verb};

/// Cache times.
const TOKEN_FOR: Duration = Duration::from_secs(120);
const ALLOWED_FOR: Duration = Duration::from_secs(300);
const DENIED_FOR: Duration = Duration::from_secs(30);

/// An authenticated user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct User {
    pub name: String,
    pub uid: String,
    pub groups: Vec<String>,
    pub extra: BTreeMap<String, Vec<String>>,
}

/// Decides who may use the kubelet API.
pub struct Access {
    node_name: String,
    /// The client for reviews.
    client: Client,
    /// The client CA; none: client certificates are ignored.
    authorities: Option<Authorities>,
    /// Whether anonymous requests are allowed.
    anonymous: bool,
    /// Certificates that were refused recently, and why.
    pub(super) refused: Repeats,
    tokens: Cache<String, Option<User>>,
    verdicts: Cache<(User, &'static str, &'static str), bool>,
}

/// Why a request is denied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Denial {
    #[error("Unauthorized")]
    Unknown,
    #[error(
        "Forbidden (user={user}, verb={verb}, resource=nodes, subresource(s)=[{subresources}])\n"
    )]
    Forbidden {
        user: String,
        verb: &'static str,
        subresources: String,
    },
    #[error(
        "Authorization error (user={user}, verb={verb}, resource=nodes, subresource={subresource})"
    )]
    NoAnswer {
        user: String,
        verb: &'static str,
        subresource: &'static str,
    },
}

impl Access {
    pub fn new(
        node_name: &str,
        client: Client,
        authorities: Option<Authorities>,
        anonymous: bool,
    ) -> Access {
        let (tokens, verdicts) = (Cache::default(), Cache::default());
        let (node_name, refused) = (node_name.to_owned(), Repeats::default());
        Access {
            node_name,
            client,
            authorities,
            anonymous,
            refused,
            tokens,
            verdicts,
        }
    }

    /// Authenticates and authorizes a request.
    pub(super) async fn check(
        &self,
        certified: &Certified,
        headers: &HeaderMap,
        method: &Method,
        path: &str,
    ) -> Result<(), Denial> {
        let user = self
            .authenticate(certified, headers)
            .await
            .ok_or(Denial::Unknown)?;
        let (verb, subresources) = (verb(method), subresources(path));
        for subresource in subresources {
            match self.authorize(&user, verb, subresource).await {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(%error, user = user.name, verb, subresource, "SubjectAccessReview failed");
                    return Err(Denial::NoAnswer {
                        user: user.name,
                        verb,
                        subresource,
                    });
                }
            }
        }

        Err(Denial::Forbidden {
            user: user.name,
            verb,
            subresources: subresources.join(" "),
        })
    }

    /// The user of a connection's client certificate.
    pub(super) fn certified(
        &self,
        chain: &[rustls::pki_types::CertificateDer<'_>],
        now: coracle_api::time::Timestamp,
    ) -> Certified {
        self.authorities
            .as_ref()
            .map_or(Certified::Anonymous, |authorities| {
                authorities.verify(chain, now)
            })
    }

    async fn authenticate(&self, certified: &Certified, headers: &HeaderMap) -> Option<User> {
        if let Certified::User(user) = certified {
            return Some(User::clone(user));
        }

        let header = headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok());
        match header.and_then(|header| header.split_once(' ')) {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => {
                self.review_token(token.trim()).await
            }
            _ => without_token(certified, self.anonymous),
        }
    }

    async fn review_token(&self, token: &str) -> Option<User> {
        if let Some(known) = self.tokens.get(&token.to_owned()) {
            return known;
        }

        let spec = TokenReviewSpec {
            token: token.to_owned(),
            ..TokenReviewSpec::default()
        };

        let review = TokenReview {
            spec,
            ..TokenReview::default()
        };

        let status = match self.client.typed::<TokenReview>().create(&review).await {
            Ok(review) => review.status.unwrap_or_default(),
            Err(error) => {
                tracing::warn!(%error, "TokenReview failed");
                return None;
            }
        };

        let user = status
            .user
            .filter(|_| status.authenticated.unwrap_or_default())
            .map(|user| User {
                name: user.username.unwrap_or_default(),
                uid: user.uid.unwrap_or_default(),
                groups: user.groups.unwrap_or_default(),
                extra: user.extra.unwrap_or_default(),
            });
        self.tokens
            .insert(token.to_owned(), user.clone(), TOKEN_FOR);

        user
    }

    async fn authorize(
        &self,
        user: &User,
        verb: &'static str,
        subresource: &'static str,
    ) -> Result<bool, coracle_client::Error> {
        let question = (user.clone(), verb, subresource);
        if let Some(verdict) = self.verdicts.get(&question) {
            return Ok(verdict);
        }

        let attributes = ResourceAttributes {
            verb: Some(verb.to_owned()),
            version: Some("v1".to_owned()),
            resource: Some("nodes".to_owned()),
            subresource: Some(subresource.to_owned()),
            name: Some(self.node_name.clone()),
            ..ResourceAttributes::default()
        };

        let spec = SubjectAccessReviewSpec {
            resource_attributes: Some(attributes),
            user: Some(user.name.clone()),
            uid: Some(user.uid.clone()).filter(|uid| !uid.is_empty()),
            groups: Some(user.groups.clone()),
            extra: Some(user.extra.clone()),
            ..SubjectAccessReviewSpec::default()
        };

        let review = SubjectAccessReview {
            spec,
            ..SubjectAccessReview::default()
        };

        let review = self
            .client
            .typed::<SubjectAccessReview>()
            .create(&review)
            .await?;

        let allowed = review.status.is_some_and(|status| status.allowed);
        self.verdicts.insert(
            question,
            allowed,
            if allowed { ALLOWED_FOR } else { DENIED_FOR },
        );

        Ok(allowed)
    }
}

/// Who sends a request that shows no token.
fn without_token(certified: &Certified, anonymous: bool) -> Option<User> {
    match certified {
        Certified::User(user) => Some(User::clone(user)),
        // As upstream: what was shown and does not count is an error, and only without one somebody
        // is anonymous.
        Certified::Refused(_) => None,
        Certified::Anonymous => anonymous.then(|| User {
            name: "system:anonymous".to_owned(),
            groups: vec!["system:unauthenticated".to_owned()],
            ..User::default()
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn who_shows_a_certificate_that_does_not_count_is_not_anonymous() {
        let check = |certified: &Certified, anonymous: bool, expected: Option<&str>| {
            let user = without_token(certified, anonymous).map(|user| user.name);
            assert_eq!(
                user.as_deref(),
                expected,
                "{certified:?}, anonymous: {anonymous}"
            );
        };

        let jane = Certified::User(Arc::new(User {
            name: "jane".to_owned(),
            ..User::default()
        }));

        let expired = Certified::Refused("expired".to_owned());
        check(&jane, false, Some("jane"));
        check(&Certified::Anonymous, true, Some("system:anonymous"));
        check(&Certified::Anonymous, false, None);
        check(&expired, true, None);
        check(&expired, false, None);
    }
}
