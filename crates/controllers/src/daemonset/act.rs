//! Carries out the plan.

use std::sync::Arc;

use coracle_api::{Map, Value};
use coracle_client::{Error, ObjectKey};

use super::fit::new_pod;
use super::plan::{Observed, Plan, Pods, Step};
use super::{DaemonSets, HASH, SETS, acted_on};
use crate::framework::Requeue;
use crate::history::{HistoryError, Settled};
use crate::pods::{Owner, PodError, requeue_after};
use crate::views::Phase;
use crate::write_status::write_status;

/// Why a plan could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    #[error(transparent)]
    Pods(#[from] PodError),
    #[error(transparent)]
    History(#[from] HistoryError),
    #[error("cannot update status")]
    Status(#[source] Error),
}

impl DaemonSets {
    pub(super) async fn carry_out(
        &self,
        key: &ObjectKey,
        observed: &Observed,
        plan: Plan,
    ) -> Result<Requeue, ActError> {
        let owner = Owner::of(&observed.set);
        self.own.control.claim(&owner, &plan.claims, &[]).await?;

        let mut status = plan.status;
        let managed = match &plan.step {
            Step::Going => return Ok(Requeue::OnEvent),
            Step::SelectsAll => {
                let text =
                    "This daemon set is selecting all pods. A non-empty selector is required.";
                self.own
                    .recorder
                    .warning(&owner.about, "SelectingAll", text);
                return Ok(Requeue::OnEvent);
            }
            Step::Revise => {
                let template = observed.set.template().cloned().unwrap_or_default();
                let parent = &observed.set.object.object;
                let settled = self
                    .own
                    .history
                    .settle(&owner, parent, &template, &plan.history)
                    .await?;

                if let Settled::Written(Some(collisions)) = settled {
                    status.insert("collisionCount", collisions);
                }

                Ok(())
            }
            Step::Wait => Ok(()),
            Step::Pods(pods, surplus) => {
                let hash = plan
                    .history
                    .current
                    .as_ref()
                    .map(|current| current.label(HASH))
                    .unwrap_or_default();

                match self.replace(&owner, observed, pods, hash).await {
                    Ok(()) => self
                        .own
                        .history
                        .forget(&owner, surplus)
                        .await
                        .map_err(ActError::History),
                    Err(error) => Err(error.into()),
                }
            }
        };

        self.note_status(key, observed, &status).await?;
        managed?;

        Ok(requeue_after(observed.settled, plan.wake_after))
    }

    async fn replace(
        &self,
        owner: &Owner,
        observed: &Observed,
        pods: &Pods,
        hash: &str,
    ) -> Result<(), PodError> {
        for (pod, node) in &pods.ended {
            let (namespace, name) = (&pod.key.namespace, &pod.key.name);
            if pod.phase == Phase::Failed {
                self.backoff.record_failure(
                    &observed.set.uid,
                    acted_on(&observed.set),
                    node,
                    self.world.now(),
                );

                let text = format!(
                    "Found failed daemon pod {namespace}/{name} on node {node}, will try to kill it"
                );
                self.own
                    .recorder
                    .warning(&owner.about, "FailedDaemonPod", text);
            } else {
                let text = format!(
                    "Found succeeded daemon pod {namespace}/{name} on node {node}, will try to delete it"
                );
                self.own
                    .recorder
                    .normal(&owner.about, "SucceededDaemonPod", text);
            }
        }

        let new = pods
            .create
            .iter()
            .map(|node| new_pod(&observed.set, owner, node, hash).map(Arc::new));
        let new: Vec<_> = new.collect::<Option<_>>().ok_or(PodError::NoLabels)?;
        self.own.control.expect(owner, new.len(), &pods.delete);
        let made = self.own.control.create(owner, &new).await;
        let deleted = self.own.control.delete(owner, &pods.delete).await;

        made.result().and(deleted.result())
    }

    async fn note_status(
        &self,
        key: &ObjectKey,
        observed: &Observed,
        wanted: &Map,
    ) -> Result<(), ActError> {
        let set = &observed.set.object.object;
        if set.get("status").and_then(Value::as_object) == Some(wanted) {
            return Ok(());
        }

        let sets = self.own.access.clone().namespace(&key.namespace);
        if let Some(written) = write_status(&sets, set, wanted)
            .await
            .map_err(ActError::Status)?
        {
            self.own.written.note(key, SETS, &written);
        }

        Ok(())
    }
}
