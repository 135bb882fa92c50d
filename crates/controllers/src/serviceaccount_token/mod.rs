//! Service account tokens in secrets: a secret of type `kubernetes.io/service-account-token` gets a
//! token of the account that it names, and is deleted with that account.
//!
//! The caches decide which secrets are processed; writes are based on objects just read from the
//! server, so that no changed secret is overwritten, and no secret is deleted because the informer
//! has not reported its account yet.

pub mod plan;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use coracle_api::time::Timestamp;
use coracle_api::{Text, Value};
use coracle_client::{
    Access, Change, DeleteOptions, Error, Informer, Metadata, ObjectKey, Resource, Selection,
    Whole, WorkQueue,
};
use tracing::warn;

use crate::framework::{Context, Controller, Feeds, Observation, Requeue, Runner};
use plan::{Observed, Plan, account_of};

/// The field selector of the secrets.
const OUR_TYPE: &str = "type=kubernetes.io/service-account-token";

/// The account and secret of a token.
pub struct TokenRequest<'a> {
    pub namespace: &'a str,
    pub account: &'a str,
    pub account_uid: &'a str,
    pub secret: &'a str,
}

type Sign = dyn Fn(&TokenRequest<'_>) -> Option<String> + Send + Sync;

/// Signs tokens; `None` if it cannot.
#[derive(Clone)]
pub struct TokenSigner(pub Arc<Sign>);

impl fmt::Debug for TokenSigner {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("TokenSigner")
    }
}

/// What the controller works on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// A secret.
    Secret(ObjectKey),
    /// An account that may name a deleted secret.
    Reference { account: ObjectKey, secret: Text },
}

impl fmt::Display for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Secret(secret) => write!(out, "{secret}"),
            Key::Reference { account, secret } => write!(out, "{secret} of {account}"),
        }
    }
}

/// The controller.
pub struct ServiceAccountTokens {
    secrets: Informer<Whole>,
    accounts: Informer<Metadata>,
    secret_access: Access,
    account_access: Access,
    signer: TokenSigner,
    authority: Option<Arc<str>>,
}

/// Why a secret could not be processed.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    /// The server could not be read.
    #[error("cannot read secret or service account")]
    Read(#[source] Error),
    /// The server rejected a write.
    #[error("cannot write secret or service account")]
    Write(#[source] Error),
    /// The token could not be signed.
    #[error("cannot sign token")]
    Sign,
}

/// Runs the controller; without a key it does nothing. Never returns.
pub async fn run(
    context: &Context,
    signer: Option<TokenSigner>,
    authority: Option<Arc<str>>,
    workers: usize,
) {
    let Some(signer) = signer else {
        warn!(
            controller = ServiceAccountTokens::NAME,
            "controller not started: no service account signing key configured"
        );
        return std::future::pending().await;
    };

    let queue = WorkQueue::new("serviceaccount_tokens_secret");
    let mut feeds = Feeds::new();
    let controller = ServiceAccountTokens::new(context, signer, authority, &queue, &mut feeds);
    Runner::new(controller, queue, context)
        .run(feeds, workers)
        .await;
}

impl ServiceAccountTokens {
    /// Creates the controller; its feeds fill `queue`. It writes as the manager itself, from which
    /// others get their tokens.
    pub fn new(
        context: &Context,
        signer: TokenSigner,
        authority: Option<Arc<str>>,
        queue: &WorkQueue<Key>,
        feeds: &mut Feeds,
    ) -> ServiceAccountTokens {
        let of = |plural| Resource::builtin("", "v1", plural);
        let secrets: Informer<Whole> = context
            .informers
            .of(Selection::all(&of("secrets")).fields(OUR_TYPE));
        let accounts: Informer<Metadata> = context.informers.of(&of("serviceaccounts"));

        let concerned = queue.clone();
        feeds.follow(&secrets, move |change| {
            let Some(secret) = change.object() else {
                return;
            };
            concerned.add(Key::Secret(secret.key.clone()));

            if let Change::Deleted { object, .. } = change {
                let account = ObjectKey::new(&object.key.namespace, account_of(&object.object));
                concerned.add(Key::Reference {
                    account,
                    secret: Text::new(&object.key.name),
                });
            }
        });

        let (concerned, kept) = (queue.clone(), secrets.clone());
        feeds.follow(&accounts, move |change| {
            let Some(account) = change.object() else {
                return;
            };

            let secrets = kept.list_namespace(&account.key.namespace);
            for secret in secrets
                .iter()
                .filter(|secret| account_of(&secret.object) == &*account.key.name)
            {
                concerned.add(Key::Secret(secret.key.clone()));
            }
        });

        let client = context.shared_client();
        ServiceAccountTokens {
            secrets,
            accounts,
            secret_access: client.resource(&of("secrets")),
            account_access: client.resource(&of("serviceaccounts")),
            signer,
            authority,
        }
    }

    /// The account that a secret names, from the server.
    async fn account(&self, secret: &Value) -> Result<Option<Value>, ActError> {
        let accounts = self
            .account_access
            .clone()
            .namespace(secret.meta().namespace());
        let found = accounts
            .find(account_of(secret))
            .await
            .map_err(ActError::Read)?;
        Ok(found.filter(|account| plan::is_account(secret, account.meta().uid())))
    }

    /// Fills a secret if it is unchanged on the server.
    async fn fill(&self, held: &Value, account: &Value) -> Result<(), ActError> {
        let meta = held.meta();
        let secrets = self.secret_access.clone().namespace(meta.namespace());
        let live = secrets.find(meta.name()).await.map_err(ActError::Read)?;
        let same = |live: &Value| live.meta().resource_version() == meta.resource_version();

        // If it changed, its event brings it back.
        let Some(live) = live.filter(same) else {
            return Ok(());
        };
        let authority = self.authority.as_deref();

        let missing_parts = plan::missing_parts(&live, authority);
        if !missing_parts.any() {
            return Ok(());
        }

        let kept = TokenRequest {
            namespace: meta.namespace(),
            account: account.meta().name(),
            account_uid: account.meta().uid(),
            secret: meta.name(),
        };

        let token = match missing_parts.token {
            true => Some((self.signer.0)(&kept).ok_or(ActError::Sign)?),
            false => None,
        };

        ignore_gone(
            secrets
                .update(&plan::filled(live, account, authority, token.as_deref()))
                .await,
        )
    }

    /// Deletes the secret of a deleted account, matched by UID.
    async fn remove(&self, secret: &Value) -> Result<(), ActError> {
        let secrets = self
            .secret_access
            .clone()
            .namespace(secret.meta().namespace());

        ignore_gone(
            secrets
                .delete(
                    secret.meta().name(),
                    &DeleteOptions::only(secret.meta().uid()),
                )
                .await,
        )
    }

    async fn forget(&self, account: &ObjectKey, secret: &str) -> Result<(), ActError> {
        let accounts = self.account_access.clone().namespace(&account.namespace);
        let found = accounts.find(&account.name).await.map_err(ActError::Read)?;
        match found.and_then(|found| plan::without_reference(found, secret)) {
            // On a conflict it is read again.
            Some(right) => accounts
                .update(&right)
                .await
                .map(drop)
                .map_err(ActError::Write),
            None => Ok(()),
        }
    }
}

/// A deleted or changed object needs nothing more: its event brings it back.
fn ignore_gone<T>(written: Result<T, Error>) -> Result<(), ActError> {
    match written {
        Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
        done => done.map(drop).map_err(ActError::Write),
    }
}

#[async_trait]
impl Controller for ServiceAccountTokens {
    type Key = Key;
    type Observed = Observed;
    type Plan = Plan;
    type Error = ActError;

    const NAME: &'static str = "serviceaccount-token-controller";

    fn observe(&self, key: &Key) -> Observation<Observed> {
        match key {
            Key::Secret(key) => {
                let Some(secret) = self.secrets.get(key) else {
                    return Observation::Absent;
                };
                let account = ObjectKey::new(&key.namespace, account_of(&secret.object));
                let account = self
                    .accounts
                    .get(&account)
                    .map(|account| account.uid.to_string());

                let authority = self.authority.as_deref().map(str::to_string);
                let observed = Observed::Secret {
                    secret: secret.object.clone(),
                    account,
                    authority,
                };

                Observation::Present {
                    uid: secret.uid.clone(),
                    observed,
                }
            }
            Key::Reference { account, secret } => {
                let is_back = self
                    .secrets
                    .get(&ObjectKey::new(&account.namespace, secret))
                    .is_some();

                let Some(account) = self.accounts.get(account).filter(|_| !is_back) else {
                    return Observation::Absent;
                };
                Observation::Present {
                    uid: account.uid.clone(),
                    observed: Observed::Reference,
                }
            }
        }
    }

    fn plan(observed: &Observed, _: Timestamp) -> Plan {
        plan::plan(observed)
    }

    async fn act(&self, key: &Key, observed: Observed, plan: Plan) -> Result<Requeue, ActError> {
        match (key, &observed, plan) {
            (_, Observed::Secret { secret, .. }, Plan::Fill | Plan::VerifyAccount) => {
                match self.account(secret).await? {
                    Some(account) => self.fill(secret, &account).await?,
                    None => self.remove(secret).await?,
                }
            }
            (Key::Reference { account, secret }, _, Plan::Forget) => {
                self.forget(account, secret).await?
            }
            _ => {}
        }

        Ok(Requeue::OnEvent)
    }
}
