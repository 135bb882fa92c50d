//! Authorization: the chain of authorizers.
//!
//! Each allows, denies, or has no opinion; the first that allows or denies decides, and what none
//! allows is refused. Members of `system:masters` are always allowed.

mod attributes;
pub mod node;
pub mod rbac;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use coracle_api::go_text::Quoted;

pub use attributes::attributes_of;
pub use coracle_kinds::access::{AccessTarget, Attributes, ResourceTarget};
use coracle_kinds::rbac::{Rule, aggregate};
pub use node::Node;
pub use rbac::Rbac;
use rbac::policy::Binding;

use crate::ApiError;
use crate::authn::User;
use crate::status::Details;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    Allow(Grant),
    /// No other authorizer is called. The reason is returned to the client.
    Deny(String),
    NoOpinion(String),
}

/// Why something is allowed; formatted only when it is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grant {
    /// There is no reason.
    Plain,
    Binding(Arc<Binding>),
}

impl Grant {
    /// The reason, for the user that it was given to.
    pub fn reason<'a>(&'a self, user: &'a User) -> impl fmt::Display + 'a {
        fmt::from_fn(move |f| match self {
            Grant::Plain => Ok(()),
            Grant::Binding(binding) => write!(f, "RBAC: allowed by {}", binding.described(user)),
        })
    }
}

/// The rules that apply to a user in a namespace, as far as an authorizer can list them.
#[derive(Debug, Default)]
pub struct Listing {
    pub rules: Vec<Rule>,
    /// There is more that cannot be listed.
    pub incomplete: bool,
    /// The error of an incomplete list; empty: none.
    pub error: String,
}

/// One of the chain.
#[async_trait]
pub trait Authorizer: Send + Sync {
    async fn authorize(&self, attributes: &Attributes<'_>) -> Decision;

    fn rules(&self, user: &User, namespace: &str) -> Listing;
}

/// Allows everything: `--authorization-mode=AlwaysAllow`.
pub struct AlwaysAllow;

#[async_trait]
impl Authorizer for AlwaysAllow {
    async fn authorize(&self, _: &Attributes<'_>) -> Decision {
        Decision::Allow(Grant::Plain)
    }

    fn rules(&self, _: &User, _: &str) -> Listing {
        let all = || vec!["*".into()].into_boxed_slice();
        let none = || Vec::new().into_boxed_slice();
        let resources = Rule {
            verbs: all(),
            groups: all(),
            resources: all(),
            names: none(),
            urls: none(),
        };

        let paths = Rule {
            groups: none(),
            resources: none(),
            urls: all(),
            ..resources.clone()
        };

        Listing {
            rules: vec![resources, paths],
            ..Listing::default()
        }
    }
}

/// Has no opinion on anything: `--authorization-mode=AlwaysDeny`.
pub struct AlwaysDeny;

#[async_trait]
impl Authorizer for AlwaysDeny {
    async fn authorize(&self, _: &Attributes<'_>) -> Decision {
        Decision::NoOpinion("Everything is forbidden.".to_string())
    }

    fn rules(&self, _: &User, _: &str) -> Listing {
        Listing::default()
    }
}

/// The chain.
#[derive(Clone)]
pub struct Authorization {
    pub chain: Vec<Arc<dyn Authorizer>>,
}

impl Authorization {
    /// Whether it may be done, or the refusal.
    pub async fn check(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        match self.decide(attributes).await {
            Decision::Allow(_) => Ok(()),
            Decision::Deny(reason) | Decision::NoOpinion(reason) => {
                Err(forbidden(attributes, &reason))
            }
        }
    }

    pub async fn allows(&self, attributes: &Attributes<'_>) -> bool {
        matches!(self.decide(attributes).await, Decision::Allow(_))
    }

    /// The decision of the whole chain.
    pub async fn decide(&self, attributes: &Attributes<'_>) -> Decision {
        if attributes.user.is_master() {
            return Decision::Allow(Grant::Plain);
        }

        let mut reasons = Vec::new();
        for authorizer in &self.chain {
            match authorizer.authorize(attributes).await {
                Decision::NoOpinion(reason) if reason.is_empty() => {}
                Decision::NoOpinion(reason) => reasons.push(reason),
                decided => return decided,
            }
        }

        Decision::NoOpinion(reasons.join("\n"))
    }

    /// The rules of all authorizers that apply to a user in a namespace.
    pub fn rules(&self, user: &User, namespace: &str) -> Listing {
        let mut all = Listing::default();
        let mut errors = Vec::new();
        for authorizer in &self.chain {
            let listing = authorizer.rules(user, namespace);
            all.rules.extend(listing.rules);
            all.incomplete |= listing.incomplete;
            errors.extend(Some(listing.error).filter(|error| !error.is_empty()));
        }

        all.error = if errors.is_empty() {
            String::new()
        } else {
            aggregate(&errors)
        };

        all
    }
}

/// The error for a request that is not allowed, with upstream's text.
pub fn forbidden(attributes: &Attributes<'_>, reason: &str) -> ApiError {
    let (user, verb) = (Quoted(&attributes.user.name), attributes.verb);
    let (what, details) = match attributes.target {
        AccessTarget::Path(path) => (
            format!("User {user} cannot {verb} path {}", Quoted(path)),
            Details::default(),
        ),
        AccessTarget::Resource(target_resource) => {
            let resource = match target_resource.subresource {
                "" => target_resource.resource.to_string(),
                subresource => format!("{}/{subresource}", target_resource.resource),
            };

            let place = match target_resource.namespace {
                "" => "at the cluster scope".to_string(),
                namespace => format!("in the namespace {}", Quoted(namespace)),
            };

            let (resource, group) = (Quoted(&resource), Quoted(target_resource.group));
            let details = Details {
                name: target_resource.name.to_string(),
                group: target_resource.group.to_string(),
                kind: target_resource.resource.to_string(),
                ..Details::default()
            };

            (
                format!(
                    "User {user} cannot {verb} resource {resource} in API group {group} {place}"
                ),
                details,
            )
        }
    };

    // User input must not be rendered as HTML by a browser.
    let what = what
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");

    let reason = if reason.is_empty() {
        String::new()
    } else {
        format!(": {reason}")
    };

    ApiError::denied(details, &format!("{what}{reason}"))
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;
    use crate::request::{Query, RequestInfo};

    struct Fixed(Decision);

    #[async_trait]
    impl Authorizer for Fixed {
        async fn authorize(&self, _: &Attributes<'_>) -> Decision {
            self.0.clone()
        }

        fn rules(&self, _: &User, _: &str) -> Listing {
            Listing::default()
        }
    }

    async fn check(
        chain: Vec<Decision>,
        group: &str,
        method: Method,
        path: &str,
        expected: Option<&str>,
    ) {
        let chain = chain
            .into_iter()
            .map(|decision| Arc::new(Fixed(decision)) as Arc<dyn Authorizer>);
        let user = User {
            name: "jane".to_string(),
            groups: vec![group.to_string()],
            ..User::default()
        };

        let request = RequestInfo::new(&method, path, &Query::parse(""));
        let query = Query::parse("");
        let attributes = attributes_of(&user, &request, &query);
        let result = Authorization {
            chain: chain.collect(),
        }
        .check(&attributes)
        .await;
        assert_eq!(result.err().map(|error| error.message).as_deref(), expected);
    }

    fn no_opinion(reason: &str) -> Decision {
        Decision::NoOpinion(reason.to_string())
    }

    #[tokio::test]
    async fn the_first_decision_wins_and_masters_are_always_allowed() {
        let deny = || Decision::Deny("no".to_string());
        check(
            vec![no_opinion(""), Decision::Allow(Grant::Plain), deny()],
            "",
            Method::GET,
            "/",
            None,
        )
        .await;

        check(
            vec![no_opinion("unheard"), deny(), Decision::Allow(Grant::Plain)],
            "",
            Method::GET,
            "/",
            Some(r#"forbidden: User "jane" cannot get path "/": no"#),
        )
        .await;

        check(vec![deny()], "system:masters", Method::GET, "/", None).await;
    }

    #[tokio::test]
    async fn what_no_authorizer_allows_is_refused_with_upstreams_text() {
        check(
            vec![no_opinion("")],
            "",
            Method::GET,
            "/api/v1/pods",
            Some(r#"pods is forbidden: User "jane" cannot list resource "pods" in API group "" at the cluster scope"#),
        )
        .await;

        check(
            vec![no_opinion("a"), no_opinion("b")],
            "",
            Method::PUT,
            "/apis/apps/v1/namespaces/n/deployments/d/status",
            Some(
                "deployments.apps \"d\" is forbidden: User \"jane\" cannot update resource \"deployments/status\" in \
                 API group \"apps\" in the namespace \"n\": a\nb",
            ),
        )
        .await;
    }
}
