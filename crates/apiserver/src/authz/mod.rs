//! May they: the chain of authorizers.
//!
//! Each allows, denies, or has no opinion; the first of the former two decides, and what nobody allows is refused. Those
//! of `system:masters` are never asked about.

use std::sync::Arc;

use async_trait::async_trait;

use crate::ApiError;
use crate::authn::User;
use crate::request::RequestInfo;
use crate::status::Details;

/// What somebody is about to do.
pub struct Attributes<'a> {
    pub user: &'a User,
    pub request: &'a RequestInfo,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    Allow,
    /// Nobody else is asked. The reason is told to the client.
    Deny(String),
    NoOpinion(String),
}

/// One of the chain.
#[async_trait]
pub trait Authorizer: Send + Sync {
    async fn authorize(&self, attributes: &Attributes<'_>) -> Decision;
}

/// Allows everything: `--authorization-mode=AlwaysAllow`.
pub struct AlwaysAllow;

#[async_trait]
impl Authorizer for AlwaysAllow {
    async fn authorize(&self, _: &Attributes<'_>) -> Decision {
        Decision::Allow
    }
}

/// The chain.
pub struct Authorization {
    pub chain: Vec<Arc<dyn Authorizer>>,
}

impl Authorization {
    /// Whether it may be done, or the refusal.
    pub async fn check(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        if attributes.user.is_master() {
            return Ok(());
        }
        let mut reasons = Vec::new();
        for authorizer in &self.chain {
            match authorizer.authorize(attributes).await {
                Decision::Allow => return Ok(()),
                Decision::Deny(reason) => {
                    reasons.push(reason);
                    break;
                }
                Decision::NoOpinion(reason) => reasons.push(reason),
            }
        }
        reasons.retain(|reason| !reason.is_empty());
        Err(forbidden(attributes, &reasons.join("\n")))
    }
}

fn forbidden(attributes: &Attributes<'_>, reason: &str) -> ApiError {
    let (user, verb) = (&attributes.user.name, attributes.request.verb);
    let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    let Some(target) = &attributes.request.target else {
        let path = &attributes.request.path;
        return ApiError::denied(
            Details::default(),
            &format!("User {user:?} cannot {verb} path {path:?}{reason}"),
        );
    };
    let resource = match target.subresource.as_str() {
        "" => target.resource.to_string(),
        subresource => format!("{}/{subresource}", target.resource),
    };
    let place = match target.namespace.as_str() {
        "" => "at the cluster scope".to_string(),
        namespace => format!("in the namespace {namespace:?}"),
    };
    let group = target.group.as_str();
    let what =
        format!("User {user:?} cannot {verb} resource {resource:?} in API group {group:?} {place}{reason}");
    let details = Details {
        name: target.name.to_string(),
        group: group.to_string(),
        kind: target.resource.to_string(),
        ..Details::default()
    };
    ApiError::denied(details, &what)
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;
    use crate::request::Query;

    struct Says(Decision);

    #[async_trait]
    impl Authorizer for Says {
        async fn authorize(&self, _: &Attributes<'_>) -> Decision {
            self.0.clone()
        }
    }

    async fn check(chain: Vec<Decision>, group: &str, method: Method, path: &str, expected: Option<&str>) {
        let chain = chain.into_iter().map(|decision| Arc::new(Says(decision)) as Arc<dyn Authorizer>);
        let user = User { name: "jane".to_string(), groups: vec![group.to_string()], ..User::default() };
        let request = RequestInfo::new(&method, path, &Query::parse(""));
        let attributes = Attributes { user: &user, request: &request };
        let result = Authorization { chain: chain.collect() }.check(&attributes).await;
        assert_eq!(result.err().map(|error| error.message).as_deref(), expected);
    }

    fn no_opinion(reason: &str) -> Decision {
        Decision::NoOpinion(reason.to_string())
    }

    #[tokio::test]
    async fn the_first_who_decides_is_heard_and_masters_are_not_asked_about() {
        let deny = || Decision::Deny("no".to_string());
        check(vec![no_opinion(""), Decision::Allow, deny()], "", Method::GET, "/", None).await;
        check(
            vec![deny(), Decision::Allow],
            "",
            Method::GET,
            "/",
            Some(r#"forbidden: User "jane" cannot get path "/": no"#),
        )
        .await;
        check(vec![deny()], "system:masters", Method::GET, "/", None).await;
    }

    #[tokio::test]
    async fn what_nobody_allows_is_refused_in_upstreams_words() {
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
