//! Who a request is from, and what it may do, as the API server says.
//!
//! Client certificates are verified here, with the CA of the cluster, and those of front proxies,
//! whose headers then name the user; tokens by a TokenReview.
//! Authorization is a SubjectAccessReview. Results are kept for a short time.

mod cache;
mod certificate;
mod front_proxy;

use std::collections::BTreeMap;
use std::time::Duration;

use coracle_client::{Client, Repeats};
use http::{HeaderMap, header};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};

use cache::Cache;
pub use certificate::{Authorities, BadAuthority, Certified};
pub use front_proxy::FrontProxies;

/// How long results of reviews are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptFor {
    pub tokens: Duration,
    pub allowed: Duration,
    pub denied: Duration,
}

/// An authenticated user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct User {
    pub name: String,
    pub uid: String,
    pub groups: Vec<String>,
    pub extra: BTreeMap<String, Vec<String>>,
}

/// What a request does: the question of a SubjectAccessReview.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// A verb on a resource of the core group.
    Resource {
        verb: &'static str,
        resource: &'static str,
        subresource: &'static str,
        name: String,
    },
    /// A verb on a path that is not about a resource.
    Path { verb: String, path: String },
}

/// Reviews of the API server.
pub struct Reviews {
    /// Of tokens, of permissions.
    clients: [Client; 2],
    kept_for: KeptFor,
    /// Whether requests without credentials are from `system:anonymous`.
    anonymous: bool,
    /// Certificates that were refused recently, and why.
    pub(crate) refused: Repeats,
    tokens: Cache<String, Option<User>>,
    verdicts: Cache<(User, Action), bool>,
}

impl Reviews {
    /// The clients review tokens and permissions.
    pub fn new(clients: [Client; 2], kept_for: KeptFor, anonymous: bool) -> Reviews {
        Reviews {
            clients,
            kept_for,
            anonymous,
            refused: Repeats::default(),
            tokens: Cache::default(),
            verdicts: Cache::default(),
        }
    }

    /// Who sends a request; `None`: unknown.
    pub async fn authenticate(&self, certified: &Certified, headers: &HeaderMap) -> Option<User> {
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

        let status = match self.clients[0].typed::<TokenReview>().create(&review).await {
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
            .insert(token.to_owned(), user.clone(), self.kept_for.tokens);

        user
    }

    /// Whether a user may do this.
    pub async fn authorize(
        &self,
        user: &User,
        action: Action,
    ) -> Result<bool, coracle_client::Error> {
        let question = (user.clone(), action);
        if let Some(verdict) = self.verdicts.get(&question) {
            return Ok(verdict);
        }

        let review = SubjectAccessReview {
            spec: question.1.asked_for(user),
            ..SubjectAccessReview::default()
        };

        let review = self.clients[1]
            .typed::<SubjectAccessReview>()
            .create(&review)
            .await?;

        let allowed = review.status.is_some_and(|status| status.allowed);
        let time = match allowed {
            true => self.kept_for.allowed,
            false => self.kept_for.denied,
        };
        self.verdicts.insert(question, allowed, time);

        Ok(allowed)
    }
}

impl Action {
    fn asked_for(&self, user: &User) -> SubjectAccessReviewSpec {
        let (resource_attributes, non_resource_attributes) = match self {
            Action::Resource {
                verb,
                resource,
                subresource,
                name,
            } => {
                let attributes = ResourceAttributes {
                    verb: Some((*verb).to_owned()),
                    version: Some("v1".to_owned()),
                    resource: Some((*resource).to_owned()),
                    subresource: Some((*subresource).to_owned()),
                    name: Some(name.clone()),
                    ..ResourceAttributes::default()
                };
                (Some(attributes), None)
            }
            Action::Path { verb, path } => {
                let attributes = NonResourceAttributes {
                    verb: Some(verb.clone()),
                    path: Some(path.clone()),
                };
                (None, Some(attributes))
            }
        };

        SubjectAccessReviewSpec {
            resource_attributes,
            non_resource_attributes,
            user: Some(user.name.clone()),
            uid: Some(user.uid.clone()).filter(|uid| !uid.is_empty()),
            groups: Some(user.groups.clone()),
            extra: Some(user.extra.clone()),
        }
    }
}

/// Who sends a request that shows no token.
fn without_token(certified: &Certified, anonymous: bool) -> Option<User> {
    match certified {
        Certified::User(user) => Some(User::clone(user)),
        // As upstream: an invalid certificate is an error; only a request without one is anonymous.
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
