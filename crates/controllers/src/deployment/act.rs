//! Carries out the plan.

use coracle_api::{Map, Value};
use coracle_client::{Access, Cached, DeleteOptions, Error, ObjectKey, ObjectReference, ownership};

use super::Deployments;
use super::plan::{Observed, Plan, Rollback, Step};
use super::revision::{self, REVISION, ROLLBACK};
use super::sizes::{Resize, size};
use super::status::Status;
use crate::framework::Requeue;
use crate::views::Deployment;

/// Why a plan could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    #[error("cannot adopt or release replica set")]
    Claim(#[source] Error),
    #[error("{0} was deleted or replaced; adoption skipped")]
    Replaced(ObjectKey),
    #[error("cannot create replica set")]
    Create(#[source] Error),
    #[error("replica set {0} is not in the cache yet")]
    Unobserved(String),
    #[error("hash collision: the name of the new replica set is taken")]
    Collision,
    #[error("cannot update replica set")]
    Write(#[source] Error),
    #[error("cannot roll back")]
    Rollback(#[source] Error),
    #[error("cannot delete old replica set")]
    Forget(#[source] Error),
    #[error("cannot update status")]
    Status(#[source] Error),
    #[error("unexpected deployment strategy type")]
    UnknownStrategy,
}

impl Deployments {
    pub(super) async fn carry_out(
        &self,
        key: &ObjectKey,
        observed: &Observed,
        plan: Plan,
    ) -> Result<Requeue, ActError> {
        self.resolve(key, observed).await?;
        self.claim(key, observed, &plan).await?;
        let about = ObjectReference::of(&observed.deployment.object.object);

        let mut status = plan.status;
        match plan.step {
            Step::Nothing => {}
            Step::UnknownStrategy => return Err(ActError::UnknownStrategy),
            Step::SelectsAll => {
                let text =
                    "This deployment is selecting all pods. A non-empty selector is required.";
                self.recorder
                    .warning(&about, "SelectingAll", text.to_string());
                status = only_generation(&observed.deployment);
            }
            Step::Create(set) => self.create(key, observed, &set, &about).await?,
            Step::Update(set) => self.write_set(key, &set).await?,
            Step::Resize(all) => {
                for resize in all {
                    self.resize(key, observed, resize, &about).await?;
                }
            }
            Step::Rollback(how) => return self.roll_back(key, observed, how, &about).await,
        }

        for set in plan.forget {
            let only = DeleteOptions::only(&set.uid);
            match self.sets_in(key).delete(&set.key.name, &only).await {
                Err(error) if !error.is_not_found() && !error.is_conflict() => {
                    return Err(ActError::Forget(error));
                }
                _ => {}
            }
        }

        self.write_status(key, observed, status, plan.revision.as_deref())
            .await?;

        Ok(plan.wake_after.map_or(Requeue::OnEvent, Requeue::After))
    }

    fn sets_in(&self, key: &ObjectKey) -> Access {
        self.set_access.clone().namespace(&key.namespace)
    }

    fn deployments_in(&self, key: &ObjectKey) -> Access {
        self.deployment_access.clone().namespace(&key.namespace)
    }

    /// Looks up ReplicaSets whose creation had no response: they take up capacity that the plan
    /// considers free.
    async fn resolve(&self, key: &ObjectKey, observed: &Observed) -> Result<(), ActError> {
        let made = self
            .creations
            .resolve(&observed.deployment.uid, &self.sets_in(key))
            .await;
        let made = made.map_err(ActError::Create)?;
        made.iter().for_each(|set| self.note_set(key, set));
        made.first().map_or(Ok(()), |set| {
            Err(ActError::Unobserved(set.meta().name().to_string()))
        })
    }

    async fn claim(
        &self,
        key: &ObjectKey,
        observed: &Observed,
        plan: &Plan,
    ) -> Result<(), ActError> {
        let sets = self.sets_in(key);
        let own = &observed.deployment;
        for set in &plan.release {
            let released = ownership::release(&sets, &set.key.name, &set.uid, &own.uid).await;
            released.map_err(ActError::Claim)?;
        }

        if plan.adopt.is_empty() {
            return Ok(());
        }

        // The cache may show a deleted Deployment whose successor selects the same ReplicaSets.
        let live = self
            .deployments_in(key)
            .get(&key.name)
            .await
            .map_err(ActError::Claim)?;

        if live.meta().uid() != own.uid || live.meta().is_being_deleted() {
            return Err(ActError::Replaced(key.clone()));
        }

        let controller = ownership::Controller {
            api_version: "apps/v1".into(),
            kind: "Deployment".into(),
            name: key.name.clone(),
            uid: own.uid.clone(),
        };

        for set in &plan.adopt {
            match ownership::adopt(&sets, &set.key.name, &set.uid, &controller, &[]).await {
                Err(error) if !error.is_not_found() => return Err(ActError::Claim(error)),
                _ => {}
            }
        }

        Ok(())
    }

    async fn create(
        &self,
        key: &ObjectKey,
        observed: &Observed,
        set: &Value,
        about: &ObjectReference,
    ) -> Result<(), ActError> {
        let name = set.meta().name();
        let made = self
            .creations
            .create(&observed.deployment.uid, &self.sets_in(key), set)
            .await;

        let error = match made {
            Ok(made) => {
                self.note_set_version(key, made.version);
                let pods = set
                    .at(&["spec", "replicas"])
                    .and_then(Value::as_int)
                    .unwrap_or_default();

                if pods > 0 {
                    let text = format!("Scaled up replica set {name} from 0 to {pods}");
                    self.recorder.normal(about, "ScalingReplicaSet", text);
                }

                return Ok(());
            }
            Err(error) => error,
        };

        if error.has_cause("NamespaceTerminating") {
            return Ok(());
        }

        if error.is_already_exists() {
            return self.collision(key, observed, set).await;
        }

        let text = format!("Failed to create new replica set {name:?}: {error}");
        let mut status =
            Status::counted(&observed.deployment, &observed.sets, None, self.world.now());
        status.not_created(&text);
        self.recorder.warning(about, "ReplicaSetCreateError", text);
        self.write_status(key, observed, status.done(), None)
            .await?;

        Err(ActError::Create(error))
    }

    /// The name is taken. By our own ReplicaSet of the same template: its event is on its way. By
    /// any other: the next attempt uses another name.
    async fn collision(
        &self,
        key: &ObjectKey,
        observed: &Observed,
        set: &Value,
    ) -> Result<(), ActError> {
        let there = self
            .sets_in(key)
            .get(set.meta().name())
            .await
            .map_err(ActError::Create)?;
        let owner = ownership::Controller::of(there.meta());
        let is_ours = owner.is_some_and(|owner| owner.uid == observed.deployment.uid);

        let template = ["spec", "template"];
        if is_ours && revision::same_template(there.at(&template), set.at(&template)) {
            self.note_set(key, &there);
            return Ok(());
        }

        let mut status =
            Status::counted(&observed.deployment, &observed.sets, None, self.world.now());
        status.collided();
        self.write_status(key, observed, status.done(), None)
            .await?;

        Err(ActError::Collision)
    }

    async fn write_set(&self, key: &ObjectKey, set: &Value) -> Result<(), ActError> {
        let written = self
            .sets_in(key)
            .update(set)
            .await
            .map_err(ActError::Write)?;
        self.note_set(key, &written);
        Ok(())
    }

    async fn resize(
        &self,
        key: &ObjectKey,
        observed: &Observed,
        resize: Resize,
        about: &ObjectReference,
    ) -> Result<(), ActError> {
        let mut set = Value::clone(&resize.set.object.object);
        let (from, to) = (size(&resize.set), resize.to);
        if let Some(Value::Object(spec)) = set.as_object_mut().and_then(|set| set.get_mut("spec")) {
            spec.insert("replicas", to);
        }

        revision::set_sizes(&mut set, &observed.deployment);

        if set == *resize.set.object.object {
            return Ok(());
        }

        self.write_set(key, &set).await?;

        if from != to {
            let way = if from < to { "up" } else { "down" };
            let text = format!(
                "Scaled {way} replica set {} from {from} to {to}",
                resize.set.key.name
            );
            self.recorder.normal(about, "ScalingReplicaSet", text);
        }

        Ok(())
    }

    async fn roll_back(
        &self,
        key: &ObjectKey,
        observed: &Observed,
        how: Rollback,
        about: &ObjectReference,
    ) -> Result<Requeue, ActError> {
        let mut next = match &how {
            Rollback::To(_, back) => back.clone(),
            Rollback::Unchanged(_) | Rollback::NotFound => {
                Value::clone(&observed.deployment.object.object)
            }
        };
        next.meta_mut().set_annotation(ROLLBACK, None);

        match &how {
            Rollback::NotFound => {
                let text = "Unable to find the revision to rollback to.".to_string();
                self.recorder
                    .warning(about, "DeploymentRollbackRevisionNotFound", text);
            }
            Rollback::Unchanged(to) => {
                let text = format!(
                    "The rollback revision contains the same template as current deployment {:?}",
                    key.name.as_str()
                );
                tracing::debug!(%key, revision = to, "rollback skipped: template unchanged");
                self.recorder
                    .warning(about, "DeploymentRollbackTemplateUnchanged", text);
            }
            Rollback::To(to, _) => {
                let text = format!(
                    "Rolled back deployment {:?} to revision {to}",
                    key.name.as_str()
                );
                self.recorder.normal(about, "DeploymentRollback", text);
            }
        }

        self.deployments_in(key)
            .update(&next)
            .await
            .map_err(ActError::Rollback)?;

        Ok(Requeue::OnEvent)
    }

    /// Writes status and revision, if either changed.
    async fn write_status(
        &self,
        key: &ObjectKey,
        observed: &Observed,
        status: Map,
        revision: Option<&str>,
    ) -> Result<(), ActError> {
        let deployment = &observed.deployment;
        if deployment.status() == Some(&status) && revision.is_none() {
            return Ok(());
        }

        let mut next = Value::clone(&deployment.object.object);
        if let Some(members) = next.as_object_mut() {
            members.insert("status", status);
        }
        if let Some(revision) = revision {
            next.meta_mut().set_annotation(REVISION, Some(revision));
        }

        match self
            .deployments_in(key)
            .subresource("status")
            .update(&next)
            .await
        {
            Ok(written) => {
                let version = written
                    .meta()
                    .resource_version()
                    .parse()
                    .unwrap_or_default();

                self.note_written(key, |written| {
                    written.deployment = written.deployment.max(version)
                });
                Ok(())
            }
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(ActError::Status(error)),
        }
    }
}

/// The current status with the observed generation updated.
fn only_generation(deployment: &Cached<Deployment>) -> Map {
    let mut status = deployment.status().cloned().unwrap_or_default();
    let generation = deployment.object.object.meta().generation();
    if status.int("observedGeneration") < generation {
        status.insert("observedGeneration", generation);
    }
    status
}
