//! Who asks, and whether they may: both are the cluster's to say.
//!
//! A client certificate is judged here, by the authority of the cluster; a token is shown to the
//! API server. Whether somebody may do something is asked of it always. Answers are kept for a
//! short while, as many as fit.

mod attributes;
mod certificate;
mod kept;

use std::collections::BTreeMap;
use std::time::Duration;

use coracle_client::{Client, Repeats};
use http::{HeaderMap, Method, header};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};

pub(super) use certificate::Certified;
pub use certificate::{Authorities, BadAuthority};
use kept::Kept;

use self::attributes::{subresources, verb};

/// How long answers are believed.
const TOKEN_FOR: Duration = Duration::from_secs(120);
const ALLOWED_FOR: Duration = Duration::from_secs(300);
const DENIED_FOR: Duration = Duration::from_secs(30);

/// Somebody who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct User {
    pub name: String,
    pub uid: String,
    pub groups: Vec<String>,
    pub extra: BTreeMap<String, Vec<String>>,
}

/// Who may use the API of a node.
pub struct Access {
    node_name: String,
    /// As whom the node asks the API server.
    client: Client,
    /// Who signs client certificates; absent: nobody is known by one.
    authorities: Option<Authorities>,
    /// Whether those are let in who say nothing of themselves.
    anonymous: bool,
    /// Which certificates were refused a short while ago, and why.
    pub(super) refused: Repeats,
    tokens: Kept<String, Option<User>>,
    verdicts: Kept<(User, &'static str, &'static str), bool>,
}

/// Why a request is not let in.
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
        let (tokens, verdicts) = (Kept::default(), Kept::default());
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

    /// Lets a request in, or not.
    pub(super) async fn check(
        &self,
        certified: &Certified,
        headers: &HeaderMap,
        method: &Method,
        path: &str,
    ) -> Result<(), Denial> {
        let user = self.user(certified, headers).await.ok_or(Denial::Unknown)?;
        let (verb, subresources) = (verb(method), subresources(path));
        for subresource in subresources {
            match self.may(&user, verb, subresource).await {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(%error, user = user.name, verb, subresource, "nobody says whether this is allowed");
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

    /// Whom a connection's certificate names.
    pub(super) fn certified(
        &self,
        chain: &[rustls::pki_types::CertificateDer<'_>],
        now: coracle_api::time::Timestamp,
    ) -> Certified {
        self.authorities
            .as_ref()
            .map_or(Certified::Nobody, |authorities| {
                authorities.judge(chain, now)
            })
    }

    async fn user(&self, certified: &Certified, headers: &HeaderMap) -> Option<User> {
        if let Certified::User(user) = certified {
            return Some(User::clone(user));
        }

        let said = headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok());
        match said.and_then(|said| said.split_once(' ')) {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => {
                self.of_token(token.trim()).await
            }
            _ => without_token(certified, self.anonymous),
        }
    }

    async fn of_token(&self, token: &str) -> Option<User> {
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
                tracing::warn!(%error, "nobody says whose token this is");
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
        self.tokens.keep(token.to_owned(), user.clone(), TOKEN_FOR);

        user
    }

    async fn may(
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
        self.verdicts.keep(
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
        Certified::Nobody => anonymous.then(|| User {
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
        check(&Certified::Nobody, true, Some("system:anonymous"));
        check(&Certified::Nobody, false, None);
        check(&expired, true, None);
        check(&expired, false, None);
    }
}
