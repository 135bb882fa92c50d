//! What the plan says, done.

use coracle_api::meta::ObjectMeta;
use coracle_api::owner::OwnerReference;
use coracle_api::{Map, Value};
use coracle_client::{Access, Cached, DeleteOptions, Error, ObjectKey, ObjectReference, ownership};
use futures_util::future::join_all;

use super::ReplicaSets;
use super::plan::{Observed, Plan, Pods};
use super::status::{Failure, status};
use crate::frame::Requeue;
use crate::views::{Pod, ReplicaSet};

/// The first batch of pods to be made; each that follows is twice as large.
const FIRST_BATCH: usize = 1;

/// Why a plan could not be carried out to its end.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    #[error("cannot adopt or release a pod")]
    Claim(#[source] Error),
    #[error("{0} was deleted or replaced, and adopts nothing")]
    Replaced(ObjectKey),
    #[error("unable to create pods, no labels")]
    NoLabels,
    #[error("cannot create a pod")]
    Create(#[source] Error),
    #[error("cannot delete a pod")]
    Delete(#[source] Error),
    #[error("cannot write the status")]
    Status(#[source] Error),
}

impl ReplicaSets {
    pub(super) async fn carry_out(
        &self,
        key: &ObjectKey,
        observed: &Observed,
        plan: Plan,
    ) -> Result<Requeue, ActError> {
        if !self.claim(key, observed, &plan).await? {
            // One of the pods is not what it seemed: the event that says so is on its way.
            return Ok(Requeue::OnEvent);
        }
        let managed = match &plan.pods {
            Pods::Keep => Ok(()),
            Pods::Create(count) => self.create(key, observed, *count).await,
            Pods::Delete(pods) => self.delete(key, observed, pods).await,
        };
        let failure = managed.as_ref().err().map(|error| failure(&plan.pods, error));
        self.write_status(key, observed, &plan, failure.as_ref()).await?;
        managed?;
        Ok(plan.wake_after.map_or(Requeue::OnEvent, Requeue::After))
    }

    fn pods_in(&self, key: &ObjectKey) -> Access {
        self.pod_access.clone().namespace(&key.namespace)
    }

    /// Releases and adopts; `false`: a pod that was to be adopted is gone.
    async fn claim(&self, key: &ObjectKey, observed: &Observed, plan: &Plan) -> Result<bool, ActError> {
        let pods = self.pods_in(key);
        for pod in &plan.release {
            let released = ownership::release(&pods, &pod.key.name, &pod.uid, &observed.set.uid).await;
            released.map_err(ActError::Claim)?;
        }
        if plan.adopt.is_empty() {
            return Ok(true);
        }
        // The cache may show a ReplicaSet that is gone, and whose successor wants the same pods: only the server knows.
        let live = self.set_access.clone().namespace(&key.namespace).get(&key.name).await;
        let live = live.map_err(ActError::Claim)?;
        if live.meta().uid() != observed.set.uid || live.meta().is_being_deleted() {
            return Err(ActError::Replaced(key.clone()));
        }
        let controller = controller(&observed.set);
        for pod in &plan.adopt {
            match ownership::adopt(&pods, &pod.key.name, &pod.uid, &controller).await {
                Ok(()) => {}
                Err(error) if error.is_not_found() => return Ok(false),
                Err(error) => return Err(ActError::Claim(error)),
            }
        }
        Ok(true)
    }

    /// Creates pods in batches of 1, 2, 4 …, so that where none can be made few are tried.
    async fn create(&self, key: &ObjectKey, observed: &Observed, count: usize) -> Result<(), ActError> {
        let pod = new_pod(&observed.set)?;
        let (pods, about) = (self.pods_in(key), ObjectReference::of(&observed.set.object.object));
        self.expectations.expect_creations(key, count);
        let (mut left, mut batch) = (count, FIRST_BATCH);
        while left > 0 {
            let size = batch.min(left);
            let made = join_all((0..size).map(|_| pods.create(&pod))).await;
            left -= size;
            batch *= 2;
            let mut first_failure = None;
            for made in made {
                match made {
                    Ok(made) => self.created(key, &about, &made),
                    // The namespace goes and takes everything with it: nothing is owed.
                    Err(error) if error.has_cause("NamespaceTerminating") => {}
                    Err(error) => {
                        self.expectations.lower_creations(key, 1);
                        self.recorder.warning(&about, "FailedCreate", format!("Error creating: {error}"));
                        first_failure.get_or_insert(error);
                    }
                }
            }
            if let Some(error) = first_failure {
                // What was not tried is not waited for.
                self.expectations.lower_creations(key, left);
                return Err(ActError::Create(error));
            }
        }
        Ok(())
    }

    fn created(&self, key: &ObjectKey, about: &ObjectReference, made: &Value) {
        let version = made.meta().resource_version().parse().unwrap_or_default();
        self.note_written(key, |written| written.pods = written.pods.max(version));
        self.recorder.normal(about, "SuccessfulCreate", format!("Created pod: {}", made.meta().name()));
    }

    /// Deletes pods, all at once.
    async fn delete(
        &self,
        key: &ObjectKey,
        observed: &Observed,
        victims: &[std::sync::Arc<Cached<Pod>>],
    ) -> Result<(), ActError> {
        let (pods, about) = (self.pods_in(key), ObjectReference::of(&observed.set.object.object));
        self.expectations.expect_deletions(key, victims.iter().map(|pod| pod.uid.clone()));
        let deletions = victims.iter().map(async |pod| {
            let only = DeleteOptions::only(&pod.uid);
            (pod, pods.delete(&pod.key.name, &only).await)
        });
        let mut first_failure = None;
        for (pod, deleted) in join_all(deletions).await {
            let name = &pod.key.name;
            match deleted {
                Ok(_) => self.recorder.normal(&about, "SuccessfulDelete", format!("Deleted pod: {name}")),
                // It is gone, or another has its name: either way this one need not be deleted.
                Err(error) if error.is_not_found() || error.is_conflict() => {
                    self.expectations.deletion_observed(key, &pod.uid);
                }
                Err(error) => {
                    self.expectations.deletion_observed(key, &pod.uid);
                    self.recorder.warning(&about, "FailedDelete", format!("Error deleting: {error}"));
                    first_failure.get_or_insert(error);
                }
            }
        }
        first_failure.map_or(Ok(()), |error| Err(ActError::Delete(error)))
    }

    /// Writes the status if it is another one; on a conflict once more, over what the server has by then.
    async fn write_status(
        &self,
        key: &ObjectKey,
        observed: &Observed,
        plan: &Plan,
        failure: Option<&Failure>,
    ) -> Result<(), ActError> {
        let set = &observed.set.object.object;
        let wanted = status(observed, &plan.claimed, failure, self.world.now());
        if set.get("status").and_then(Value::as_object) == Some(&wanted) {
            return Ok(());
        }
        let sets = self.set_access.clone().namespace(&key.namespace);
        let statuses = sets.clone().subresource("status");
        let written = match statuses.update(&with_status(set, &wanted)).await {
            Err(error) if error.is_not_found() => return Ok(()),
            Err(_) => match sets.get(&key.name).await {
                Ok(live) if live.meta().uid() != observed.set.uid => return Ok(()),
                // The generation that was acted on stands in it, not the one of the newer object.
                Ok(live) => statuses.update(&with_status(&live, &wanted)).await,
                Err(error) if error.is_not_found() => return Ok(()),
                Err(error) => Err(error),
            },
            written => written,
        };
        let written = written.map_err(ActError::Status)?;
        let version = written.meta().resource_version().parse().unwrap_or_default();
        self.note_written(key, |written| written.set = written.set.max(version));
        Ok(())
    }
}

fn with_status(set: &Value, status: &Map) -> Value {
    let mut set = set.clone();
    if let Some(members) = set.as_object_mut() {
        members.insert("status", status.clone());
    }
    set
}

fn failure(pods: &Pods, error: &ActError) -> Failure {
    let reason = if matches!(pods, Pods::Delete(_)) { "FailedDelete" } else { "FailedCreate" };
    let message = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    Failure { reason, message }
}

fn controller(set: &Cached<ReplicaSet>) -> ownership::Controller {
    ownership::Controller {
        api_version: "apps/v1".into(),
        kind: "ReplicaSet".into(),
        name: set.key.name.clone(),
        uid: set.uid.clone(),
    }
}

/// A pod as the template says.
fn new_pod(set: &Cached<ReplicaSet>) -> Result<Value, ActError> {
    let template = set.template().ok_or(ActError::NoLabels)?;
    let from = template.meta();
    let labels = from.labels().filter(|labels| !labels.is_empty()).ok_or(ActError::NoLabels)?;
    let mut pod = Map::new();
    pod.insert("apiVersion", "v1");
    pod.insert("kind", "Pod");
    pod.insert("spec", template.get("spec").cloned().unwrap_or_default());
    let mut pod = Value::Object(pod);
    let mut meta = pod.meta_mut();
    meta.set_namespace(&set.key.namespace);
    meta.set_generate_name(&format!("{}-", set.key.name));
    meta.set_labels(labels.clone());
    meta.set_annotations(from.annotations().cloned().unwrap_or_default());
    for finalizer in from.finalizers() {
        meta.add_finalizer(finalizer);
    }
    let owner: ObjectMeta<'_> = set.object.object.meta();
    meta.set_owner_references([OwnerReference::to_controller(owner, "apps/v1", "ReplicaSet")]);
    Ok(pod)
}
