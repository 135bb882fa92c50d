//! Deletes everything in a namespace: pods first, and nothing else while any remains; then all
//! other resources.

use coracle_api::Value;
use coracle_api::time::Timestamp;
use coracle_client::discovery::{Served, ServedResource};
use coracle_client::{DeleteOptions, Error, ListOptions, Propagation};

use super::Namespaces;
use super::conditions::Outcome;
use super::plan::{self, Remaining};
use crate::framework::{allows, preferred};

impl Namespaces {
    /// Deletes the content of a namespace that was deleted at `deleted_at`.
    pub(super) async fn empty(
        &self,
        namespace: &str,
        deleted_at: Timestamp,
        served: &Served,
    ) -> Outcome {
        let undiscovered = served.failed.iter().map(|(path, why)| {
            let which = path
                .strip_prefix("/apis/")
                .or(path.strip_prefix("/api/"))
                .unwrap_or(path);
            (which.to_string(), why.clone())
        });

        let mut outcome = Outcome {
            undiscovered: undiscovered.collect(),
            ..Outcome::default()
        };

        let deletable = preferred(served)
            .into_iter()
            .filter(|one| one.resource.namespaced);
        let deletable: Vec<_> = deletable.filter(|one| allows(one, &["delete"])).collect();

        let (pods, others): (Vec<_>, Vec<_>) = deletable.into_iter().partition(|one| is_pods(one));
        for resource in pods {
            self.empty_of(resource, namespace, deleted_at, &mut outcome)
                .await;
        }

        if !outcome.left.is_empty() {
            outcome.stopped_at_pods = true;
            return outcome;
        }

        // A failure of one resource does not stop the others.
        for resource in others {
            self.empty_of(resource, namespace, deleted_at, &mut outcome)
                .await;
        }

        outcome
    }

    async fn empty_of(
        &self,
        resource: &ServedResource,
        namespace: &str,
        deleted_at: Timestamp,
        outcome: &mut Outcome,
    ) {
        match self.delete_all(resource, namespace, deleted_at).await {
            Ok((left, unexplained)) => {
                outcome
                    .left
                    .extend(left.map(|left| (resource.resource.clone(), left)));
                outcome.failures.extend(unexplained);
            }
            Err(error) => outcome.failures.push(error.to_string()),
        }
    }

    /// Deletes all objects of a resource. Returns what remains, or an error if nothing explains it.
    async fn delete_all(
        &self,
        resource: &ServedResource,
        namespace: &str,
        deleted_at: Timestamp,
    ) -> Result<(Option<Remaining>, Option<String>), Error> {
        let objects = self
            .client
            .resource(&resource.resource)
            .namespace(namespace);

        // Pods are read for their grace periods; of all others only the metadata.
        let listed = if is_pods(resource) {
            objects.clone()
        } else {
            objects.clone().metadata_only()
        };

        let can_list = allows(resource, &["list"]);
        let all = ListOptions::default();
        let found = if can_list {
            supported(listed.list_all(&all).await)?.items
        } else {
            Vec::new()
        };

        if can_list && found.is_empty() {
            return Ok((None, None));
        }

        let grace = if is_pods(resource) {
            plan::grace(&found, deleted_at, self.world.now())
        } else {
            0
        };

        let background = DeleteOptions {
            propagation: Some(Propagation::Background),
            ..DeleteOptions::default()
        };

        if allows(resource, &["deletecollection"]) {
            supported(objects.delete_collection(&background, &all).await)?;
        } else {
            for object in &found {
                match objects.delete(object.meta().name(), &background).await {
                    Err(error) if !is_unsupported(&error) => return Err(error),
                    _ => {}
                }
            }
        }

        if !can_list {
            return Ok((None, None));
        }

        let left: Vec<Value> = supported(objects.metadata_only().list_all(&all).await)?.items;
        Ok(plan::remaining(&left, grace, &resource.resource, namespace))
    }
}

fn is_pods(resource: &ServedResource) -> bool {
    resource.resource.group.is_empty() && resource.resource.plural == "pods"
}

/// A verb that the server does not support finds nothing.
fn supported<T: Default>(answer: Result<T, Error>) -> Result<T, Error> {
    match answer {
        Err(error) if is_unsupported(&error) => Ok(T::default()),
        answer => answer,
    }
}

fn is_unsupported(error: &Error) -> bool {
    error.is_not_found() || error.reason() == "MethodNotAllowed"
}
