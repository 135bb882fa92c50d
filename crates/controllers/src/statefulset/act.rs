//! Carries out the plan.

use coracle_api::owner::OwnerReference;
use coracle_api::{Map, Value};
use coracle_client::{Access, Cached, DeleteOptions, Deleted, Error, ObjectKey, Patch};
use futures_util::future::join_all;

use super::identity::{ClaimPod, POD_INDEX, POD_NAME, claims, new_pod, owners};
use super::plan::{Observed, Plan, Step};
use super::{CLAIMS, SETS, StatefulSets};
use crate::framework::Requeue;
use crate::history::{HistoryError, Settled};
use crate::pods::{Owner, PodError};
use crate::views::Pod;
use crate::write_status::write_status;

/// The most steps taken at once.
const LARGEST_BATCH: usize = 500;

/// Why a plan could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    #[error(transparent)]
    Pods(#[from] PodError),
    #[error(transparent)]
    History(#[from] HistoryError),
    #[error("cannot create claim {0}")]
    Claim(String, #[source] Error),
    #[error("pvc {0} is being deleted")]
    ClaimGoes(String),
    #[error("cannot update owner references of claim {0}")]
    ClaimOwners(String, #[source] Error),
    #[error("cannot create pod {0}")]
    Create(String, #[source] Error),
    #[error("cannot delete pod {0}")]
    Delete(String, #[source] Error),
    #[error("cannot label pod {0}")]
    Identify(String, #[source] Error),
    #[error("cannot update status")]
    Status(#[source] Error),
}

impl StatefulSets {
    pub(super) async fn carry_out(
        &self,
        key: &ObjectKey,
        observed: &Observed,
        plan: Plan,
    ) -> Result<Requeue, ActError> {
        let owner = Owner::of(&observed.set);
        self.own.control.claim(&owner, &plan.claims, &[]).await?;
        let mut status = plan.status;
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

        let done = self.steps(&owner, observed, &plan.steps).await;
        self.note_status(key, observed, &status).await?;
        self.own.history.forget(&owner, &plan.forget).await?;
        done?;

        Ok(plan.wake_after.map_or(Requeue::OnEvent, Requeue::After))
    }

    /// Takes steps one after the other, or in batches of 1, 2, 4 …; stops at the first failure.
    async fn steps(
        &self,
        owner: &Owner,
        observed: &Observed,
        steps: &[Step],
    ) -> Result<(), ActError> {
        let (mut left, mut batch) = (steps, 1);
        while !left.is_empty() {
            let (now, later) = left.split_at(batch.min(left.len()));
            let taken = join_all(now.iter().map(|step| self.step(owner, observed, step))).await;
            taken.into_iter().collect::<Result<(), ActError>>()?;
            left = later;
            if !observed.set.is_ordered() {
                batch = (batch * 2).min(LARGEST_BATCH);
            }
        }
        Ok(())
    }

    async fn step(&self, owner: &Owner, observed: &Observed, step: &Step) -> Result<(), ActError> {
        match step {
            Step::Create {
                ordinal,
                template,
                revision,
            } => {
                self.create(owner, observed, *ordinal, template, revision)
                    .await
            }
            Step::Delete(pod) => self.delete(owner, pod).await,
            Step::Claims(pod, ordinal) => {
                let about = ClaimPod {
                    name: &pod.key.name,
                    uid: &pod.uid,
                    is_surplus: !observed.set.wants(*ordinal),
                };
                self.claims(owner, observed, *ordinal, Some(about)).await
            }
            Step::Identify(pod) => self.identify(owner, observed, pod).await,
        }
    }

    async fn create(
        &self,
        owner: &Owner,
        observed: &Observed,
        ordinal: usize,
        template: &Value,
        revision: &str,
    ) -> Result<(), ActError> {
        let set = &observed.set;
        let name = set.pod_name(ordinal);
        let pod = new_pod(set, owner, ordinal, template, revision).ok_or(PodError::NoLabels)?;
        self.claims(owner, observed, ordinal, None)
            .await
            .inspect_err(|error| {
                self.record_pod_event(owner, "Create", &name, Some(&error.to_string()));
            })?;

        match self
            .own
            .control
            .pods_in(&owner.key.namespace)
            .create(&pod)
            .await
        {
            Ok(made) => {
                self.own.written.note(&owner.key, "pods", &made);
                self.record_pod_event(owner, "Create", &name, None);
                Ok(())
            }
            Err(error) => {
                if !error.is_already_exists() && !error.has_cause("NamespaceTerminating") {
                    self.record_pod_event(owner, "Create", &name, Some(&error.to_string()));
                }
                Err(ActError::Create(name, error))
            }
        }
    }

    async fn delete(&self, owner: &Owner, pod: &Cached<Pod>) -> Result<(), ActError> {
        let name = pod.key.name.to_string();
        let pods = self.own.control.pods_in(&owner.key.namespace);
        match pods.delete(&name, &DeleteOptions::only(&pod.uid)).await {
            Ok(Deleted::Pending(going)) => self.own.written.note(&owner.key, "pods", &going),
            Ok(Deleted::Gone) => {}
            Err(error) if error.is_not_found() || error.is_conflict() => {}
            Err(error) => {
                self.record_pod_event(owner, "Delete", &name, Some(&error.to_string()));
                return Err(ActError::Delete(name, error));
            }
        }

        self.record_pod_event(owner, "Delete", &name, None);

        Ok(())
    }

    /// Creates the missing claims of a pod, and sets the owners of existing ones.
    async fn claims(
        &self,
        owner: &Owner,
        observed: &Observed,
        ordinal: usize,
        about: Option<ClaimPod<'_>>,
    ) -> Result<(), ActError> {
        let access = self.claim_access.clone().namespace(&owner.key.namespace);
        let is_surplus = about.is_some_and(|about| about.is_surplus);
        for claim in claims(&observed.set, owner, ordinal) {
            let name = claim.meta().name().to_string();
            match observed.claims.get(name.as_str()) {
                Some(there) if there.meta().is_being_deleted() && !is_surplus => {
                    return Err(ActError::ClaimGoes(name));
                }
                Some(_) => {
                    self.own_claim(&access, owner, observed, &name, about)
                        .await?
                }
                None if is_surplus => {}
                None => {
                    self.create_claim(&access, owner, observed, ordinal, &claim)
                        .await?
                }
            }
        }

        Ok(())
    }

    async fn create_claim(
        &self,
        access: &Access,
        owner: &Owner,
        observed: &Observed,
        ordinal: usize,
        claim: &Value,
    ) -> Result<(), ActError> {
        let (name, pod) = (
            claim.meta().name().to_string(),
            observed.set.pod_name(ordinal),
        );

        let set = &owner.key.name;
        match access.create(claim).await {
            Ok(made) => {
                self.own.written.note(&owner.key, CLAIMS, &made);
                let text = format!("Create Claim {name} Pod {pod} in StatefulSet {set} success");
                self.own
                    .recorder
                    .normal(&owner.about, "SuccessfulCreate", text);
                Ok(())
            }
            Err(error) => {
                if !error.is_already_exists() {
                    let text = format!(
                        "Create Claim {name} for Pod {pod} in StatefulSet {set} failed error: {error}"
                    );
                    self.own
                        .recorder
                        .warning(&owner.about, "FailedCreate", text);
                }

                Err(ActError::Claim(name, error))
            }
        }
    }

    async fn own_claim(
        &self,
        access: &Access,
        owner: &Owner,
        observed: &Observed,
        name: &str,
        about: Option<ClaimPod<'_>>,
    ) -> Result<(), ActError> {
        let failed = |error| ActError::ClaimOwners(name.to_string(), error);
        let mut live = match access.get(name).await {
            Err(error) if error.is_not_found() => return Ok(()),
            live => live.map_err(failed)?,
        };

        let Some(wanted) = owners(&live, &observed.set, owner, about) else {
            return Ok(());
        };
        live.meta_mut()
            .set_owner_references(wanted.iter().map(OwnerReference::from_value));
        let written = access.update(&live).await.map_err(failed)?;
        self.own.written.note(&owner.key, CLAIMS, &written);

        Ok(())
    }

    async fn identify(
        &self,
        owner: &Owner,
        observed: &Observed,
        pod: &Cached<Pod>,
    ) -> Result<(), ActError> {
        let name = pod.key.name.as_str();
        let ordinal = observed.set.ordinal_of(name).unwrap_or_default();
        let mut patch = Map::new();
        let metadata = patch.object_mut("metadata");
        metadata.insert("uid", pod.uid.as_str());
        let labels = metadata.object_mut("labels");
        labels.insert(POD_NAME, name);
        labels.insert(POD_INDEX, ordinal.to_string());

        let pods = self.own.control.pods_in(&owner.key.namespace);
        match pods
            .patch(name, &Patch::Strategic(Value::Object(patch)))
            .await
        {
            Ok(written) => {
                self.own.written.note(&owner.key, "pods", &written);
                self.record_pod_event(owner, "Update", name, None);
                Ok(())
            }
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
            Err(error) => {
                self.record_pod_event(owner, "Update", name, Some(&error.to_string()));
                Err(ActError::Identify(name.to_string(), error))
            }
        }
    }

    fn record_pod_event(&self, owner: &Owner, verb: &str, pod: &str, failure: Option<&str>) {
        let set = &owner.key.name;
        let (done, failed) = match verb {
            "Create" => ("SuccessfulCreate", "FailedCreate"),
            "Update" => ("SuccessfulUpdate", "FailedUpdate"),
            _ => ("SuccessfulDelete", "FailedDelete"),
        };

        match failure {
            None => {
                let text = format!("{verb} Pod {pod} in StatefulSet {set} successful");
                self.own.recorder.normal(&owner.about, done, text);
            }
            Some(error) => {
                let text = format!("{verb} Pod {pod} in StatefulSet {set} failed error: {error}");
                self.own.recorder.warning(&owner.about, failed, text);
            }
        }
    }

    async fn note_status(
        &self,
        key: &ObjectKey,
        observed: &Observed,
        wanted: &Map,
    ) -> Result<(), ActError> {
        if observed.set.status() == Some(wanted) {
            return Ok(());
        }
        let sets = self.own.access.clone().namespace(&key.namespace);
        let written = write_status(&sets, &observed.set.object.object, wanted).await;
        if let Some(written) = written.map_err(ActError::Status)? {
            self.own.written.note(key, SETS, &written);
        }
        Ok(())
    }
}
