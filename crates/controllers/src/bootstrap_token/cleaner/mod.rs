//! The token cleaner: deletes bootstrap tokens that have expired.

pub mod plan;

use async_trait::async_trait;
use coracle_api::time::Timestamp;
use coracle_client::{Access, DeleteOptions, Error, Informer, ObjectKey, Whole, WorkQueue};

use super::{NAMESPACE, resource, secret, tokens};
use crate::framework::{Context, Controller, Feeds, Observation, Requeue, Runner};
use plan::{Observed, Plan};

/// The service account.
pub(crate) const ACCOUNT: &str = "token-cleaner";

/// The controller.
pub struct TokenCleaner {
    tokens: Informer<Whole>,
    access: Access,
}

/// The token could not be deleted.
#[derive(Debug, thiserror::Error)]
#[error("cannot delete expired bootstrap token")]
pub struct ActError(#[source] Error);

/// Runs the controller. Never returns.
pub async fn run(context: &Context) {
    let queue = WorkQueue::new("token_cleaner");
    let mut feeds = Feeds::new();
    let tokens = tokens(context);

    let concerned = queue.clone();
    feeds.follow(&tokens, move |change| {
        if let Some(token) = change.object() {
            concerned.add(token.key.clone());
        }
    });

    let access = context.client(ACCOUNT).resource(&resource());
    let access = access.namespace(NAMESPACE);
    Runner::new(TokenCleaner { tokens, access }, queue, context)
        .run(feeds, 1)
        .await;
}

#[async_trait]
impl Controller for TokenCleaner {
    type Key = ObjectKey;
    type Observed = Observed;
    type Plan = Plan;
    type Error = ActError;

    const NAME: &'static str = "token-cleaner-controller";

    fn observe(&self, key: &ObjectKey) -> Observation<Observed> {
        let Some(token) = self.tokens.get(key) else {
            return Observation::Absent;
        };
        Observation::Present {
            uid: token.uid.clone(),
            observed: Observed {
                uid: token.uid.clone(),
                expiration: secret::expiration(&token.object),
            },
        }
    }

    fn plan(observed: &Observed, now: Timestamp) -> Plan {
        plan::plan(observed.expiration, now)
    }

    async fn act(
        &self,
        key: &ObjectKey,
        observed: Observed,
        plan: Plan,
    ) -> Result<Requeue, ActError> {
        match plan {
            Plan::Keep => return Ok(Requeue::OnEvent),
            Plan::Wait(time) => return Ok(Requeue::After(time)),
            Plan::Delete => {}
        }

        let only_this = DeleteOptions::only(&observed.uid);
        match self.access.delete(&key.name, &only_this).await {
            // It is gone, or another token of that name has come.
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(Requeue::OnEvent),
            done => done.map(|_| Requeue::OnEvent).map_err(ActError),
        }
    }
}
