//! The signer: signs approved requests for the cluster's signers, or marks them failed.

pub mod authority;
mod der;
pub mod plan;
mod usage;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use coracle_api::Value;
use coracle_api::time::Timestamp;
use coracle_client::{Access, Cached, Error, Informer, ObjectKey, Whole, World};
use tracing::warn;

pub use authority::{Authority, AuthorityError};

use super::request::{Request, RequestError};
use super::{ACCOUNT, add_condition, follow, resource};
use crate::framework::{Context, Controller, Observation, Requeue, Runner};
use authority::{CertificateTemplate, SignError};
use plan::{Plan, Signer};

/// The authorities and the longest validity.
#[derive(Clone, Debug)]
pub struct Config {
    /// The authority of each signer.
    pub authorities: BTreeMap<Signer, Authority>,
    /// The longest validity of certificates.
    pub duration: Duration,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            authorities: BTreeMap::new(),
            duration: Duration::from_secs(365 * 24 * 3600),
        }
    }
}

impl Config {
    /// The same authority for all signers.
    #[must_use]
    pub fn with(authority: &Authority) -> Config {
        let authorities = Signer::ALL
            .into_iter()
            .map(|signer| (signer, authority.clone()))
            .collect();
        Config {
            authorities,
            ..Config::default()
        }
    }
}

/// The controller.
pub struct Signing {
    requests: Informer<Whole>,
    access: Access,
    config: Config,
    world: World,
}

/// Why a request was not signed.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    /// The request is malformed.
    #[error("unable to parse csr")]
    Request(#[from] RequestError),
    /// Signing failed.
    #[error("error auto signing csr")]
    Sign(#[from] SignError),
    /// The request could not be written.
    #[error("error updating csr")]
    Write(#[source] Error),
}

/// Runs the controller; without an authority it does nothing. Never returns.
pub async fn run(context: &Context, config: Config) {
    if config.authorities.is_empty() {
        warn!(
            controller = Signing::NAME,
            "controller not started: no certificate authority configured"
        );
        return std::future::pending().await;
    }

    let (requests, queue, feeds) = follow(context, "csrsigning");
    let access = context.client(ACCOUNT).resource(&resource());
    let controller = Signing {
        requests,
        access,
        config,
        world: context.world,
    };
    Runner::new(controller, queue, context).run(feeds, 5).await;
}

impl Signing {
    fn sign(
        &self,
        object: &Value,
        request: &Request,
        authority: &Authority,
    ) -> Result<String, SignError> {
        let now = self.world.now();
        let asked = object
            .at(&["spec", "expirationSeconds"])
            .and_then(Value::as_int);
        let most = i64::try_from(self.config.duration.as_secs()).unwrap_or(i64::MAX);
        let (not_before, not_after) = plan::validity(asked, most, now);

        let usages = object
            .at(&["spec", "usages"])
            .and_then(Value::as_array)
            .unwrap_or_default();
        let usages: Vec<&str> = usages.iter().filter_map(Value::as_str).collect();

        let mut serial = [0; 16];
        serial[..8].copy_from_slice(&(self.world.random)().to_be_bytes());
        serial[8..].copy_from_slice(&(self.world.random)().to_be_bytes());

        authority.sign(
            &CertificateTemplate {
                request,
                usages: &usages,
                not_before,
                not_after,
                serial,
            },
            now,
        )
    }
}

#[async_trait]
impl Controller for Signing {
    type Key = ObjectKey;
    type Observed = Arc<Cached<Whole>>;
    type Plan = Result<Plan, RequestError>;
    type Error = ActError;

    const NAME: &'static str = "certificatesigningrequest-signing-controller";

    fn observe(&self, key: &ObjectKey) -> Observation<Arc<Cached<Whole>>> {
        let Some(request) = self.requests.get(key) else {
            return Observation::Absent;
        };
        Observation::Present {
            uid: request.uid.clone(),
            observed: request,
        }
    }

    fn plan(request: &Arc<Cached<Whole>>, _: Timestamp) -> Self::Plan {
        plan::plan(request)
    }

    async fn act(
        &self,
        _: &ObjectKey,
        object: Arc<Cached<Whole>>,
        plan: Self::Plan,
    ) -> Result<Requeue, ActError> {
        let mut written = Value::clone(&object.object);
        match plan? {
            Plan::Keep => return Ok(Requeue::OnEvent),
            Plan::Fail(why) => {
                add_condition(&mut written, "Failed", "SignerValidationFailure", &why)
            }
            Plan::Sign(signer, request) => {
                let Some(authority) = self.config.authorities.get(&signer) else {
                    return Ok(Requeue::OnEvent);
                };

                let certificate = STANDARD.encode(self.sign(&object, &request, authority)?);
                if let Some(members) = written.as_object_mut() {
                    members
                        .object_mut("status")
                        .insert("certificate", certificate);
                }
            }
        }

        match self
            .access
            .clone()
            .subresource("status")
            .update(&written)
            .await
        {
            Err(error) if error.is_not_found() => Ok(Requeue::OnEvent),
            done => done.map(|_| Requeue::OnEvent).map_err(ActError::Write),
        }
    }
}
