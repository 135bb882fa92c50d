//! The ReplicaSet controller with typical controller bugs.

use async_trait::async_trait;
use coracle_api::time::Timestamp;
use coracle_client::ObjectKey;

use super::super::plan::{Observed, Plan};
use super::super::{ActError, ReplicaSets};
use crate::pods::PodError;
use crate::views::ReplicaSet;

type Sets = ReplicaSets<ReplicaSet>;
use crate::framework::{Controller, Observation, Requeue};

/// It does not wait for its own writes to be observed.
pub(super) struct ExpectsNothing(pub(super) Sets);

/// Its workers start before its caches are synced.
pub(super) struct BeginsEarly(pub(super) Sets);

/// It repeats a creation with unknown outcome at once.
pub(super) struct CreatesTwice(pub(super) Sets);

macro_rules! around {
    ($name:ident) => {
        #[async_trait]
        impl Controller for $name {
            type Key = ObjectKey;
            type Observed = Observed;
            type Plan = Plan;
            type Error = ActError;

            const NAME: &'static str = Sets::NAME;

            fn observe(&self, key: &ObjectKey) -> Observation<Observed> {
                self.see(key)
            }

            fn plan(observed: &Observed, now: Timestamp) -> Plan {
                Sets::plan(observed, now)
            }

            async fn act(
                &self,
                key: &ObjectKey,
                observed: Observed,
                plan: Plan,
            ) -> Result<Requeue, ActError> {
                self.carry_out(key, &observed, plan).await
            }
        }
    };
}
around!(ExpectsNothing);
around!(BeginsEarly);
around!(CreatesTwice);

impl ExpectsNothing {
    fn see(&self, key: &ObjectKey) -> Observation<Observed> {
        if let Some(set) = self.0.sets.get(key) {
            self.0.unobserved.forget(&set.uid);
        }
        self.0.written.forget(key);
        self.0.observe(key)
    }

    async fn carry_out(
        &self,
        key: &ObjectKey,
        observed: &Observed,
        plan: Plan,
    ) -> Result<Requeue, ActError> {
        self.0.carry_out(key, observed, plan).await
    }
}

impl BeginsEarly {
    fn see(&self, key: &ObjectKey) -> Observation<Observed> {
        self.0.observe(key)
    }

    async fn carry_out(
        &self,
        key: &ObjectKey,
        observed: &Observed,
        plan: Plan,
    ) -> Result<Requeue, ActError> {
        self.0.carry_out(key, observed, plan).await
    }
}

impl CreatesTwice {
    fn see(&self, key: &ObjectKey) -> Observation<Observed> {
        self.0.observe(key)
    }

    async fn carry_out(
        &self,
        key: &ObjectKey,
        observed: &Observed,
        plan: Plan,
    ) -> Result<Requeue, ActError> {
        let done = self.0.carry_out(key, observed, plan.clone()).await;
        if !matches!(done, Err(ActError::Pods(PodError::Create(_)))) {
            return done;
        }
        self.0.unobserved.creations.forget(&observed.set.uid);
        self.0.carry_out(key, observed, plan).await
    }
}
