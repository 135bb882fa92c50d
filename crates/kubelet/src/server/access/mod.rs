//! Authentication and authorization of the kubelet API: reviews about subresources of the node.

mod attributes;

use std::sync::Arc;
use std::time::Duration;

use coracle_client::Client;
use coracle_serving::access::{Action, Certified, Reviews};
pub use coracle_serving::access::{Authorities, BadAuthority, KeptFor};
use http::{HeaderMap, Method};

use self::attributes::{subresources, verb};

/// Upstream's defaults.
const KEPT_FOR: KeptFor = KeptFor {
    tokens: Duration::from_secs(120),
    allowed: Duration::from_secs(300),
    denied: Duration::from_secs(30),
};

/// Who may use the kubelet API.
pub struct AccessConfig {
    /// The client CA; none: client certificates are ignored.
    pub authorities: Option<Authorities>,
    /// Whether anonymous requests are allowed.
    pub anonymous: bool,
    /// Whether the API server is asked about tokens; if not, tokens are ignored.
    pub tokens: bool,
    /// Whether the API server is asked about permissions; if not, every known user may do everything.
    pub permissions: bool,
    /// How long its answers are cached.
    pub kept_for: KeptFor,
}

impl Default for AccessConfig {
    fn default() -> AccessConfig {
        AccessConfig {
            authorities: None,
            anonymous: false,
            tokens: true,
            permissions: true,
            kept_for: KEPT_FOR,
        }
    }
}

/// Decides who may use the kubelet API.
pub struct Access {
    node_name: String,
    tokens: bool,
    permissions: bool,
    pub(super) reviews: Reviews,
    /// The client CA; none: client certificates are ignored.
    pub(super) authorities: Option<Arc<Authorities>>,
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
    pub fn new(node_name: &str, client: Client, config: AccessConfig) -> Access {
        Access {
            node_name: node_name.to_owned(),
            tokens: config.tokens,
            permissions: config.permissions,
            reviews: Reviews::new([client.clone(), client], config.kept_for, config.anonymous),
            authorities: config.authorities.map(Arc::new),
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
        let none = HeaderMap::new();
        let headers = if self.tokens { headers } else { &none };
        let user = self
            .reviews
            .authenticate(certified, headers)
            .await
            .ok_or(Denial::Unknown)?;
        if !self.permissions {
            return Ok(());
        }

        let (verb, subresources) = (verb(method), subresources(path));
        for subresource in subresources {
            let action = Action::Resource {
                verb,
                resource: "nodes",
                subresource,
                name: self.node_name.clone(),
            };

            match self.reviews.authorize(&user, action).await {
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
}
