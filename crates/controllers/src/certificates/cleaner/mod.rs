//! The cleaner: deletes decided and abandoned requests after some time.

pub mod plan;

use std::time::Duration;

use async_trait::async_trait;
use coracle_api::time::Timestamp;
use coracle_client::{Access, DeleteOptions, Error, Informer, ObjectKey, Whole};

use super::{ACCOUNT, follow, resource};
use crate::framework::{Context, Controller, Observation, Requeue, Runner};

/// The controller.
pub struct Cleaner {
    requests: Informer<Whole>,
    access: Access,
}

/// What to do with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Nothing, until an event arrives.
    Keep,
    /// Nothing, for this time.
    Wait(Duration),
    /// Delete it.
    Delete,
}

/// The request could not be deleted.
#[derive(Debug, thiserror::Error)]
#[error("unable to delete CSR")]
pub struct ActError(#[source] Error);

/// Runs the controller. Never returns.
pub async fn run(context: &Context) {
    let (requests, queue, feeds) = follow(context, "csrcleaner");
    let access = context.client(ACCOUNT).resource(&resource());
    Runner::new(Cleaner { requests, access }, queue, context)
        .run(feeds, 1)
        .await;
}

#[async_trait]
impl Controller for Cleaner {
    type Key = ObjectKey;
    type Observed = Option<Timestamp>;
    type Plan = Plan;
    type Error = ActError;

    const NAME: &'static str = "certificatesigningrequest-cleaner-controller";

    fn observe(&self, key: &ObjectKey) -> Observation<Option<Timestamp>> {
        let Some(request) = self.requests.get(key) else {
            return Observation::Absent;
        };
        Observation::Present {
            uid: request.uid.clone(),
            observed: plan::delete_at(&request),
        }
    }

    fn plan(delete_at: &Option<Timestamp>, now: Timestamp) -> Plan {
        match delete_at {
            None => Plan::Keep,
            Some(at) if *at < now => Plan::Delete,
            // A second later, so that the time has certainly passed.
            Some(at) => {
                Plan::Wait(at.since(now).to_std().unwrap_or_default() + Duration::from_secs(1))
            }
        }
    }

    async fn act(
        &self,
        key: &ObjectKey,
        _: Option<Timestamp>,
        plan: Plan,
    ) -> Result<Requeue, ActError> {
        match plan {
            Plan::Keep => Ok(Requeue::OnEvent),
            Plan::Wait(time) => Ok(Requeue::After(time)),
            Plan::Delete => match self
                .access
                .delete(&key.name, &DeleteOptions::default())
                .await
            {
                Err(error) if !error.is_not_found() => Err(ActError(error)),
                _ => Ok(Requeue::OnEvent),
            },
        }
    }
}
