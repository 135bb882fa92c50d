//! Carries out the plan.

use std::sync::Arc;

use coracle_api::{Text, Value};
use coracle_client::{Cached, Error, ObjectKey};

use super::plan::{Observed, Plan, Pods};
use super::status::{Failure, status};
use super::{ReplicaSets, Set};
use crate::framework::Requeue;
use crate::pods::{Owner, PodError, requeue_after};
use crate::template;
use crate::views::Pod;
use crate::write_status::write_status;

/// Why a plan could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    #[error(transparent)]
    Pods(#[from] PodError),
    #[error("cannot update status")]
    Status(#[source] Error),
}

impl<S: Set> ReplicaSets<S> {
    pub(super) async fn carry_out(
        &self,
        key: &ObjectKey,
        observed: &Observed,
        plan: Plan,
    ) -> Result<Requeue, ActError> {
        let owner = Owner::named(&observed.set.object.object, S::API_VERSION, S::KIND);
        self.control.claim(&owner, &plan.claims, &[]).await?;

        let mut claimed = plan.claims.claimed;
        let managed = match &plan.pods {
            Pods::Keep => Ok(()),
            Pods::Create(count) => self.create(&owner, observed, *count).await,
            Pods::Delete(victims) => {
                self.control.expect(&owner, 0, victims);
                let done = self.control.delete(&owner, victims).await;
                // Deleted pods do not count any more.
                let goes = |pod: &Text| victims.iter().any(|victim| victim.uid == *pod);
                claimed.retain(|pod| !goes(&pod.uid) || done.kept.contains(&pod.uid));
                done.result()
            }
        };

        let failure = managed
            .as_ref()
            .err()
            .map(|error| failure(&plan.pods, error));

        self.note_status(key, observed, &claimed, failure.as_ref())
            .await?;
        managed?;

        Ok(requeue_after(observed.settled, plan.wake_after))
    }

    async fn create(
        &self,
        owner: &Owner,
        observed: &Observed,
        count: usize,
    ) -> Result<(), PodError> {
        let base = format!("{}-", owner.key.name);
        let template = observed.set.template().ok_or(PodError::NoLabels)?;
        let pod = template::build_pod(
            template,
            &owner.key.namespace,
            &base,
            owner.controller.reference(),
        );

        let pod = Arc::new(pod.ok_or(PodError::NoLabels)?);
        let pods = vec![pod; count];

        self.control.expect(owner, count, &[]);

        self.control.create(owner, &pods).await.result()
    }

    /// Writes the status if it changed.
    async fn note_status(
        &self,
        key: &ObjectKey,
        observed: &Observed,
        claimed: &[Arc<Cached<Pod>>],
        failure: Option<&Failure>,
    ) -> Result<(), ActError> {
        let set = &observed.set.object.object;
        let mut wanted = status(observed, claimed, failure, self.world.now());
        if !S::COUNTS_TERMINATING {
            wanted.remove("terminatingReplicas");
        }
        if set.get("status").and_then(Value::as_object) == Some(&wanted) {
            return Ok(());
        }

        let sets = self.set_access.clone().namespace(&key.namespace);
        if let Some(written) = write_status(&sets, set, &wanted)
            .await
            .map_err(ActError::Status)?
        {
            self.written.note(key, S::PLURAL, &written);
        }

        Ok(())
    }
}

fn failure(pods: &Pods, error: &PodError) -> Failure {
    let reason = if matches!(pods, Pods::Delete(_)) {
        "FailedDelete"
    } else {
        "FailedCreate"
    };
    let message =
        std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    Failure { reason, message }
}
