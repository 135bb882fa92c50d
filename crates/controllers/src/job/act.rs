//! Carries out the plan.

use std::sync::Arc;

use coracle_api::{Map, Value};
use coracle_client::{Cached, Error, ObjectKey, Patch};
use futures_util::future::join_all;

use super::new_pod::new_pod;
use super::plan::{Observed, Plan, Pods, Work};
use super::track::{Outcome, Tracked, count, finished, track};
use super::{JOBS, Jobs};
use crate::framework::Requeue;
use crate::pods::{Done, Owner, PodError, requeue_after};
use crate::views::{JOB_TRACKING, Pod};
use crate::write_status::with_status;

/// Why a plan could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    #[error(transparent)]
    Pods(#[from] PodError),
    #[error("cannot remove tracking finalizer from pod")]
    Untrack(#[source] Error),
    #[error("cannot update status")]
    Status(#[source] Error),
}

/// The patch that removes the tracking finalizer from exactly this pod.
pub(super) fn untrack_patch(pod: &Cached<Pod>) -> Patch {
    let mut metadata = Map::new();
    metadata.insert("uid", pod.uid.as_str());
    metadata.insert(
        "$deleteFromPrimitiveList/finalizers",
        vec![Value::string(JOB_TRACKING)],
    );
    let mut patch = Map::new();
    patch.insert("metadata", metadata);
    Patch::Strategic(Value::Object(patch))
}

/// The pod was deleted or replaced.
pub(super) fn is_gone(error: &Error) -> bool {
    error.is_not_found() || error.is_conflict() || error.is_invalid()
}

impl Jobs {
    pub(super) async fn carry_out(
        &self,
        key: &ObjectKey,
        observed: &Observed,
        plan: Plan,
    ) -> Result<Requeue, ActError> {
        let owner = Owner::of(&observed.job);
        let work = match plan {
            Plan::Leave => return Ok(Requeue::OnEvent),
            Plan::UnknownMode => {
                let text = "Skipped Job sync because completion mode is unknown";
                self.recorder
                    .warning(&owner.about, "UnknownCompletionMode", text);
                return Ok(Requeue::OnEvent);
            }
            Plan::Work(work) => work,
        };

        self.control
            .claim(&owner, &work.claims, &[JOB_TRACKING])
            .await?;
        let (outcome, failure) = self.pods(&owner, observed, &work).await;
        let tracked = track(observed, &work, outcome, self.world.now());
        self.count(key, &owner, observed, &work, tracked).await?;
        failure.map_or(Ok(()), Err)?;

        Ok(requeue_after(observed.settled, work.wake_after))
    }

    /// Creates and deletes pods, and returns the resulting counts.
    async fn pods(
        &self,
        owner: &Owner,
        observed: &Observed,
        work: &Work,
    ) -> (Outcome, Option<ActError>) {
        let claimed = &work.claims.claimed;
        let active: Vec<_> = claimed.iter().filter(|pod| pod.is_active()).collect();
        let ready = |pods: &[Arc<Cached<Pod>>]| pods.iter().filter(|pod| pod.is_ready()).count();
        let mut outcome = Outcome {
            active: active.len(),
            ready: active.iter().filter(|pod| pod.is_ready()).count(),
            terminating: claimed.iter().filter(|pod| pod.is_terminating()).count(),
            may_end: true,
        };

        let (gone, done) = match &work.pods {
            Pods::Keep => return (outcome, None),
            Pods::Create(new) => {
                let pods = new
                    .iter()
                    .map(|new| new_pod(&observed.job, owner, *new).map(Arc::new));
                let Some(pods) = pods.collect::<Option<Vec<_>>>() else {
                    return (outcome, Some(PodError::NoLabels.into()));
                };
                self.control.expect(owner, pods.len(), &[]);

                let done = self.control.create(owner, &pods).await;
                outcome.active += done.count;
                return (outcome, done.failure.map(ActError::Pods));
            }
            Pods::Remove(pods) => (pods, self.remove(owner, pods).await),
            Pods::End(pods) => {
                let done = self.control.delete(owner, pods).await;
                outcome.may_end = done.count == pods.len() && observed.settled;
                (pods, (done.count, done.failure.map(ActError::Pods)))
            }
        };
        let (count, failure) = done;
        outcome.active -= count;

        outcome.terminating += count;

        // If some could not be deleted, the next reconcile counts again.
        outcome.ready -= if count == gone.len() { ready(gone) } else { 0 };

        (outcome, failure)
    }

    /// Deletes pods that must not count: their tracking finalizers are removed first.
    async fn remove(&self, owner: &Owner, pods: &[Arc<Cached<Pod>>]) -> (usize, Option<ActError>) {
        self.control.expect(owner, 0, pods);
        let (free, error) = self.untrack(owner, pods).await;
        for pod in pods
            .iter()
            .filter(|pod| !free.iter().any(|free| free.uid == pod.uid))
        {
            self.unobserved
                .expectations
                .deletion_observed(&owner.controller.uid, &pod.uid);
        }

        let Done { count, failure, .. } = self.control.delete(owner, &free).await;
        (
            count,
            error.map(ActError::Untrack).or(failure.map(ActError::Pods)),
        )
    }

    /// Removes the tracking finalizer from pods; returns those without it, and the first error.
    async fn untrack(
        &self,
        owner: &Owner,
        pods: &[Arc<Cached<Pod>>],
    ) -> (Vec<Arc<Cached<Pod>>>, Option<Error>) {
        let access = self.control.pods_in(&owner.key.namespace);
        let patches = pods.iter().map(async |pod| match pod.is_tracked {
            false => (pod, Ok(None)),
            true => (
                pod,
                access
                    .patch(&pod.key.name, &untrack_patch(pod))
                    .await
                    .map(Some),
            ),
        });

        let (mut free, mut failure) = (Vec::new(), None);
        for (pod, patched) in join_all(patches).await {
            match patched {
                Ok(patched) => {
                    if let Some(patched) = patched {
                        self.written.note(&owner.key, "pods", &patched);
                    }
                    free.push(pod.clone());
                }
                Err(error) if is_gone(&error) => free.push(pod.clone()),
                Err(error) => drop(failure.get_or_insert(error)),
            }
        }

        let uids = free.iter().map(|pod| pod.uid.clone());
        self.remembered(&owner.key, &owner.controller.uid, |memory| {
            memory.untracked.extend(uids)
        });

        (free, failure)
    }

    /// Writes the UIDs of ended pods, removes their finalizers, writes the counts and at last the
    /// end of the Job.
    async fn count(
        &self,
        key: &ObjectKey,
        owner: &Owner,
        observed: &Observed,
        work: &Work,
        tracked: Tracked,
    ) -> Result<(), ActError> {
        let mut job = Value::clone(&observed.job.object.object);
        let Tracked {
            mut status,
            untrack,
            mut held,
            ending,
            news,
        } = tracked;

        let changed = observed.job.status() != Some(&status);
        if changed {
            job = self.write(key, &job, &status).await?;
            if let Some((reason, message)) = news {
                self.recorder.normal(&owner.about, reason, message);
            }
        }

        let (free, failure) = self.untrack(owner, &untrack).await;
        if changed || !free.is_empty() {
            self.remembered(key, &owner.controller.uid, |memory| {
                memory.backoff = work.backoff
            });
        }

        for pod in &free {
            held.remove(&pod.uid);
        }

        let mut counted = count(&mut status, &held);
        let ended = ending.filter(|_| failure.is_none());
        let end = ended
            .as_ref()
            .and_then(|ending| finished(&status, ending, self.world.now()));
        if let Some(end) = &end {
            (status, counted) = (end.clone(), true);
        }

        if counted {
            self.write(key, &job, &status).await?;
        }

        if let Some(ending) = ended.filter(|_| end.is_some()) {
            if ending.well {
                let wanted = observed.job.completions();
                if wanted.is_some_and(|wanted| status.int("succeeded") > wanted) {
                    let text = "Too many succeeded pods running after completion count reached";
                    self.recorder
                        .warning(&owner.about, "TooManySucceededPods", text);
                }
                self.recorder
                    .normal(&owner.about, "Completed", "Job completed");
            } else {
                self.recorder
                    .warning(&owner.about, &ending.reason, ending.message.to_string());
            }
        }

        failure.map_or(Ok(()), |error| Err(ActError::Untrack(error)))
    }

    /// Writes a status only over the version that it was computed from: counts would go wrong
    /// otherwise.
    async fn write(&self, key: &ObjectKey, job: &Value, status: &Map) -> Result<Value, ActError> {
        let statuses = self
            .job_access
            .clone()
            .namespace(&key.namespace)
            .subresource("status");
        let written = statuses
            .update(&with_status(job, status))
            .await
            .map_err(ActError::Status)?;
        self.written.note(key, JOBS, &written);
        Ok(written)
    }
}
