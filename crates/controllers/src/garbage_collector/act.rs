//! Carries out the plan, after reading the server, because the graph may be stale.

use coracle_api::Map;
use coracle_api::Value;
use coracle_client::{
    Access, DeleteOptions, Error, MappingError, Patch, Preconditions, Propagation, Resource, retry,
};
use futures_util::future::join_all;

use super::identity::Identity;
use super::plan::{Dependent, Item, Observed, Owners, Plan, Verdict, verdict};
use super::{GarbageCollector, Work, owners};
use crate::framework::Requeue;
use crate::views::{FOREGROUND, ORPHAN, Owned, Owner};

/// The most dependents orphaned at once.
const AT_ONCE: usize = 50;

/// Why an object could not be processed.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    /// The resource of the owner's kind is unknown.
    #[error("unknown kind of owner")]
    Kind(#[from] MappingError),
    /// The object could not be read.
    #[error("cannot read object")]
    Read(#[source] Error),
    /// The object could not be deleted.
    #[error("cannot delete object")]
    Delete(#[source] Error),
    /// The owner references could not be changed.
    #[error("cannot update owner references")]
    Owners(#[source] Error),
    /// The finalizer could not be removed.
    #[error("cannot remove finalizer")]
    Finalizer(#[source] Error),
    /// The owner exists, but its informer has not reported it yet.
    #[error("owner exists but is not in the cache yet")]
    Unheard,
}

impl GarbageCollector {
    pub(super) async fn carry_out(
        &self,
        observed: &Observed,
        plan: Plan,
    ) -> Result<Requeue, ActError> {
        let identity = &observed.identity;
        let resource = match &observed.resource {
            _ if plan == Plan::Keep => return Ok(Requeue::OnEvent),
            Some(resource) => resource.clone(),
            None => {
                self.resources
                    .of_kind(&identity.api_version, &identity.kind)
                    .await?
                    .resource
            }
        };

        match plan {
            Plan::Keep => {}
            Plan::Wait(dependents) => {
                dependents
                    .into_iter()
                    .for_each(|dependent| self.queue.add(Work::Look(dependent)));
            }
            Plan::Release => {
                self.remove_finalizer(&resource, identity, FOREGROUND)
                    .await?
            }
            Plan::Orphan(dependents) => {
                self.orphan(&dependents, identity).await?;
                self.remove_finalizer(&resource, identity, ORPHAN).await?;
            }
            // A cluster-scoped object cannot have a namespaced owner: nothing is concluded from
            // such a reference.
            Plan::Verify if resource.namespaced && identity.namespace.is_empty() => {}
            Plan::Verify => match self.live(&resource, identity).await? {
                Some(_) => return Err(ActError::Unheard),
                None if resource.namespaced => self.feed.absent(identity),
                None => self.feed.absent(&identity.of_cluster()),
            },
            Plan::Decide(item) => match self.live(&resource, identity).await? {
                None => self.feed.absent(identity),
                Some(live) => self.decide(&resource, identity, &item, &live).await?,
            },
        }

        Ok(Requeue::OnEvent)
    }

    /// Reads the owners of an object and acts on the result.
    async fn decide(
        &self,
        resource: &Resource,
        identity: &Identity,
        item: &Item,
        live: &Value,
    ) -> Result<(), ActError> {
        let now = Owned::of(live.meta());
        let mut states = Vec::new();
        for owner in &now.owners {
            match self.state(owner, &identity.namespace).await? {
                Some(state) => states.push((owner.uid.clone(), state)),
                // The reference is ambiguous, so the object is left alone.
                None => return Ok(()),
            }
        }

        let objects = self.objects(resource, identity);
        match verdict(item, &states, now.orphans, now.foreground) {
            Verdict::Keep => Ok(()),
            Verdict::Unlink(gone) => {
                let unlinked = owners::unlink(&objects, &identity.name, &identity.uid, &gone).await;
                unlinked.map_err(ActError::Owners)
            }
            Verdict::Delete {
                propagation,
                unblock,
            } => {
                if unblock {
                    owners::unblock(&objects, live)
                        .await
                        .map_err(ActError::Owners)?;
                }

                // Unblocking changed the version.
                let version = live.meta().resource_version();
                let version = (!unblock).then(|| version.to_string());
                self.delete(&objects, identity, live, propagation, version)
                    .await
            }
        }
    }

    /// The state of an owner; `None` if it is namespaced and its dependent is not.
    async fn state(&self, owner: &Owner, namespace: &str) -> Result<Option<Owners>, ActError> {
        let mut named = Identity::of_owner(owner, namespace);
        {
            let absent = &mut self.feed.graph().absent;
            if absent.has(&named.of_cluster()) || absent.has(&named) {
                return Ok(Some(Owners::Dangling));
            }
        }

        let resource = self
            .resources
            .of_kind(&owner.api_version, &owner.kind)
            .await?
            .resource;

        if resource.namespaced && namespace.is_empty() {
            return Ok(None);
        }
        if !resource.namespaced {
            named = named.of_cluster();
        }

        let Some(live) = self.live(&resource, &named).await? else {
            self.feed.graph().absent.add(&named);
            return Ok(Some(Owners::Dangling));
        };
        let waits = Owned::of(live.meta()).deletes_dependents();

        Ok(Some(if waits {
            Owners::Waiting
        } else {
            Owners::Solid
        }))
    }

    /// The object with this UID.
    async fn live(
        &self,
        resource: &Resource,
        identity: &Identity,
    ) -> Result<Option<Value>, ActError> {
        let found = self
            .objects(resource, identity)
            .metadata_only()
            .find(&identity.name)
            .await;
        let found = found.map_err(ActError::Read)?;
        Ok(found.filter(|live| live.meta().uid() == identity.uid))
    }

    /// Deletes an object if it is unchanged since the decision, or has the same owners.
    async fn delete(
        &self,
        objects: &Access,
        identity: &Identity,
        checked: &Value,
        propagation: Propagation,
        version: Option<String>,
    ) -> Result<(), ActError> {
        let options = |resource_version| DeleteOptions {
            propagation: Some(propagation),
            preconditions: Preconditions {
                uid: Some(identity.uid.to_string()),
                resource_version,
            },
            ..DeleteOptions::default()
        };

        let is_exact = version.is_some();
        let mut deleted = objects.delete(&identity.name, &options(version)).await;
        if is_exact && deleted.as_ref().is_err_and(Error::is_conflict) {
            let live = objects
                .clone()
                .metadata_only()
                .find(&identity.name)
                .await
                .map_err(ActError::Read)?;

            let owners = |object: &Value| Owned::of(object.meta()).owners;
            if live.is_some_and(|live| {
                live.meta().uid() == identity.uid && owners(&live) == owners(checked)
            }) {
                deleted = objects.delete(&identity.name, &options(None)).await;
            }
        }

        match deleted {
            Ok(_) => Ok(()),
            Err(error) if error.is_not_found() => {
                self.feed.absent(identity);
                Ok(())
            }
            Err(error) => Err(ActError::Delete(error)),
        }
    }

    async fn orphan(&self, dependents: &[Dependent], owner: &Identity) -> Result<(), ActError> {
        let gone = [owner.uid.clone()];
        for some in dependents.chunks(AT_ONCE) {
            let unlinked = some.iter().map(async |dependent| {
                let objects = self
                    .client
                    .resource(&dependent.resource)
                    .namespace(&dependent.key.namespace);

                match owners::unlink(&objects, &dependent.key.name, &dependent.uid, &gone).await {
                    // It was replaced by another of its name.
                    Err(error) if error.is_conflict() || error.is_invalid() => Ok(()),
                    done => done,
                }
            });
            let failed = join_all(unlinked).await.into_iter().find_map(Result::err);
            failed.map_or(Ok(()), |error| Err(ActError::Owners(error)))?;
        }

        Ok(())
    }

    /// The server deletes the object with its last finalizer.
    async fn remove_finalizer(
        &self,
        resource: &Resource,
        identity: &Identity,
        finalizer: &str,
    ) -> Result<(), ActError> {
        let objects = self.objects(resource, identity);
        let attempt = || async {
            let live = objects.clone().metadata_only().find(&identity.name).await?;
            let Some(live) = live.filter(|live| live.meta().uid() == identity.uid) else {
                return Ok(());
            };
            if !live.meta().has_finalizer(finalizer) {
                return Ok(());
            }

            let others = live.meta().finalizers().filter(|other| *other != finalizer);
            let others: Vec<Value> = others.map(Value::from).collect();
            let mut metadata = Map::new();
            metadata.insert("resourceVersion", live.meta().resource_version());
            metadata.insert("finalizers", others);
            let mut patch = Map::new();
            patch.insert("metadata", metadata);

            match objects
                .patch(&identity.name, &Patch::Merge(Value::Object(patch)))
                .await
            {
                Err(error) if error.is_not_found() => Ok(()),
                done => done.map(drop),
            }
        };

        retry::on_conflict(self.client.world(), attempt)
            .await
            .map_err(ActError::Finalizer)
    }

    fn objects(&self, resource: &Resource, identity: &Identity) -> Access {
        self.client
            .resource(resource)
            .namespace(&identity.namespace)
    }
}
