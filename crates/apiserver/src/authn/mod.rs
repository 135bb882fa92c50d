//! Authentication: the chain of authenticators.
//!
//! Each reads the credentials of a request and returns a user, no opinion, or an error. The first
//! user wins; an invalid credential beside a valid one is ignored, alone it is a 401. A request
//! without credentials is `system:anonymous`, where that is allowed.

mod certificate;
mod request_header;
pub mod token;

use std::sync::Arc;

use async_trait::async_trait;
use coracle_api::time::Timestamp;
use coracle_client::Repeats;
use http::{HeaderMap, header};
use tracing::{debug, warn};

pub use certificate::{Authorities, BadClientCa, ClientCertificates, Peer};
pub use coracle_client::ProxyHeaders;
pub use coracle_kinds::{
    ANONYMOUS, AUTHENTICATED, Caller, MASTERS, UNAUTHENTICATED, User, service_account_groups,
};
pub use request_header::{FrontProxy, FrontProxyConfig};

use crate::ApiError;

/// The credentials of a request.
pub struct Presented<'a> {
    pub peer: &'a Peer,
    pub headers: &'a HeaderMap,
    pub now: Timestamp,
}

/// The result of an authenticator.
#[derive(Clone, Debug, PartialEq)]
pub enum AuthnResult {
    Known(Arc<User>),
    /// There are no credentials of this type.
    Unknown,
    /// Why what was presented is wrong: for the log, never for the client.
    Wrong(String),
}

/// One of the chain.
#[async_trait]
pub trait Authenticator: Send + Sync {
    async fn authenticate(&self, presented: &Presented<'_>) -> AuthnResult;
}

/// The chain.
pub struct Authentication {
    pub chain: Vec<Box<dyn Authenticator>>,
    /// Whether requests without credentials are accepted, as anonymous.
    pub anonymous: bool,
    /// The headers in which front proxies name the user, whether or not one is configured.
    pub proxy_headers: ProxyHeaders,
    /// What was refused a short while ago, and why.
    pub refused: Repeats,
}

impl Authentication {
    /// The user of a request, or a 401.
    pub async fn user(&self, presented: &Presented<'_>) -> Result<Arc<User>, ApiError> {
        if let Some(user) = presented.peer.user() {
            return Ok(user.clone());
        }

        let mut wrong = Vec::new();
        for authenticator in &self.chain {
            match authenticator.authenticate(presented).await {
                AuthnResult::Known(user) => return Ok(user),
                AuthnResult::Unknown => {}
                AuthnResult::Wrong(why) => wrong.push(why),
            }
        }

        if self.anonymous && wrong.is_empty() {
            return Ok(User::anonymous());
        }

        for reason in wrong {
            match self.refused.is_news(&reason) {
                true => warn!(reason, "unable to authenticate the request"),
                false => debug!(reason, "unable to authenticate the request"),
            }
        }

        Err(ApiError::unauthorized())
    }

    /// Removes all credentials from a request: it has been authenticated, and backends must not see
    /// them.
    pub fn remove_credentials(&self, headers: &mut HeaderMap) {
        headers.remove(header::AUTHORIZATION);
        self.proxy_headers.remove_from(headers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed(AuthnResult);

    #[async_trait]
    impl Authenticator for Fixed {
        async fn authenticate(&self, _: &Presented<'_>) -> AuthnResult {
            self.0.clone()
        }
    }

    fn jane() -> AuthnResult {
        AuthnResult::Known(Arc::new(User {
            name: "jane".to_string(),
            ..User::default()
        }))
    }

    fn wrong() -> AuthnResult {
        AuthnResult::Wrong("expired".to_string())
    }

    async fn check(opinions: Vec<AuthnResult>, anonymous: bool, expected: Option<&str>) {
        let chain = opinions
            .into_iter()
            .map(|opinion| Box::new(Fixed(opinion)) as Box<dyn Authenticator>);

        let (proxy_headers, refused) = (ProxyHeaders::default(), Repeats::default());
        let authentication = Authentication {
            chain: chain.collect(),
            anonymous,
            proxy_headers,
            refused,
        };

        let (peer, headers) = (Peer::new(Vec::new()), HeaderMap::new());
        let presented = Presented {
            peer: &peer,
            headers: &headers,
            now: Timestamp::from_unix(0, 0),
        };
        let user = authentication.user(&presented).await;
        assert_eq!(user.ok().map(|user| user.name.clone()).as_deref(), expected);
    }

    #[tokio::test]
    async fn the_first_authenticated_user_wins() {
        check(vec![AuthnResult::Unknown, jane()], true, Some("jane")).await;
        check(vec![wrong(), jane()], true, Some("jane")).await;
    }

    #[tokio::test]
    async fn anonymous_is_accepted_only_without_credentials_and_where_allowed() {
        check(vec![AuthnResult::Unknown], true, Some("system:anonymous")).await;
        check(vec![], true, Some("system:anonymous")).await;
        check(vec![AuthnResult::Unknown], false, None).await;
        check(vec![wrong(), AuthnResult::Unknown], true, None).await;
    }
}
