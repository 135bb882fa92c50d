//! Adopts, releases, creates and deletes pods.

use std::collections::BTreeSet;
use std::sync::Arc;

use coracle_api::{Text, Value};
use coracle_client::{
    Access, Cached, DeleteOptions, Deleted, Error, ObjectKey, Recorder, Written, ownership,
};

use super::{Claims, Owner, Unobserved};
use crate::framework::{concurrently, slow_start};
use crate::own_writes::OwnWrites;
use crate::views::Pod;

/// The resource name under which own writes of pods are noted.
const PODS: &str = "pods";

/// Acts on the pods of one kind of owner.
pub struct PodControl {
    owners: Access,
    pods: Access,
    unobserved: Arc<Unobserved>,
    written: Arc<OwnWrites>,
    recorder: Recorder,
}

/// Why pods could not be claimed, created or deleted.
#[derive(Debug, thiserror::Error)]
pub enum PodError {
    #[error("cannot adopt or release pod")]
    Claim(#[source] Error),
    #[error("cannot adopt pod {0}: it was deleted")]
    Gone(String),
    #[error("{0} was deleted or replaced; adoption skipped")]
    Replaced(ObjectKey),
    #[error("unable to create pods, no labels")]
    NoLabels,
    #[error("pod {0} was created by an earlier attempt and is not in the cache yet")]
    Unobserved(String),
    #[error("cannot create pod")]
    Create(#[source] Error),
    #[error("cannot delete pod")]
    Delete(#[source] Error),
}

/// The result of a batch of actions.
#[derive(Debug, Default)]
pub struct Done {
    /// How many succeeded.
    pub count: usize,
    /// The first failure.
    pub failure: Option<PodError>,
    /// The UIDs of pods whose deletion certainly failed.
    pub kept: BTreeSet<Text>,
}

impl Done {
    /// The failure, if any.
    pub fn result(self) -> Result<(), PodError> {
        self.failure.map_or(Ok(()), Err)
    }
}

impl PodControl {
    /// Acts on the pods controlled by objects of `owners`.
    pub fn new(
        owners: Access,
        pods: Access,
        unobserved: Arc<Unobserved>,
        written: Arc<OwnWrites>,
        recorder: Recorder,
    ) -> PodControl {
        PodControl {
            owners,
            pods,
            unobserved,
            written,
            recorder,
        }
    }

    /// The pods of a namespace.
    pub fn pods_in(&self, namespace: &str) -> Access {
        self.pods.clone().namespace(namespace)
    }

    /// Releases and adopts; adopted pods also get `finalizers`.
    ///
    /// # Errors
    /// Also if the observed state is older than what the server returns here. No event of the owner
    /// needs to follow, so it has to be reconciled again.
    pub async fn claim(
        &self,
        owner: &Owner,
        claims: &Claims,
        finalizers: &[&str],
    ) -> Result<(), PodError> {
        let pods = self.pods_in(&owner.key.namespace);
        self.delete_again(owner).await?;

        let made = self
            .unobserved
            .creations
            .resolve(&owner.controller.uid, &pods)
            .await;

        let made = made.map_err(PodError::Create)?;
        if let Some(pod) = made.first() {
            made.iter()
                .for_each(|pod| self.written.note(&owner.key, PODS, pod));
            return Err(PodError::Unobserved(pod.meta().name().to_string()));
        }

        for pod in &claims.release {
            let released =
                ownership::release(&pods, &pod.key.name, &pod.uid, &owner.controller.uid).await;
            released.map_err(PodError::Claim)?;
        }

        if claims.adopt.is_empty() {
            return Ok(());
        }

        // The cache may show a deleted owner whose successor selects the same pods: only the server
        // knows.
        let live = self
            .owners
            .clone()
            .namespace(&owner.key.namespace)
            .get(&owner.key.name)
            .await;

        let live = live.map_err(PodError::Claim)?;
        if live.meta().uid() != owner.controller.uid || live.meta().is_being_deleted() {
            return Err(PodError::Replaced(owner.key.clone()));
        }

        for pod in &claims.adopt {
            match ownership::adopt(
                &pods,
                &pod.key.name,
                &pod.uid,
                &owner.controller,
                finalizers,
            )
            .await
            {
                Ok(()) => {}
                Err(error) if error.is_not_found() => {
                    return Err(PodError::Gone(pod.key.name.to_string()));
                }
                Err(error) => return Err(PodError::Claim(error)),
            }
        }

        Ok(())
    }

    /// Expects this many creations and these deletions to be observed before the next decision.
    /// Called before the first of them.
    pub fn expect(&self, owner: &Owner, creations: usize, deletions: &[Arc<Cached<Pod>>]) {
        let uids: Vec<Text> = deletions.iter().map(|pod| pod.uid.clone()).collect();
        self.unobserved
            .expectations
            .expect(&owner.controller.uid, creations, uids);
    }

    /// Creates the expected pods with slow start: if none can be created, few are tried.
    pub async fn create(&self, owner: &Owner, wanted: &[Arc<Value>]) -> Done {
        let pods = self.pods_in(&owner.key.namespace);
        let (Unobserved { expectations, .. }, uid) = (&*self.unobserved, &owner.controller.uid);

        let creations = wanted.iter().cloned().map(|pod| {
            let (unobserved, pods, uid) = (self.unobserved.clone(), pods.clone(), uid.clone());
            async move {
                match unobserved.creations.create(&uid, &pods, &pod).await {
                    // The namespace is being deleted, with everything in it.
                    Err(error) if error.has_cause("NamespaceTerminating") => Ok(None),
                    made => made.map(Some),
                }
            }
        });
        let tried = slow_start(creations).await;

        // What was not tried will not be observed.
        expectations.lower_creations(uid, wanted.len() - tried.len());
        let mut done = Done::default();
        for made in tried {
            match made {
                Ok(made) => {
                    done.count += 1;
                    made.iter().for_each(|made| self.created(owner, made));
                }
                Err(error) => {
                    expectations.lower_creations(uid, 1);
                    let text = format!("Error creating: {error}");
                    self.recorder.warning(&owner.about, "FailedCreate", text);
                    done.failure.get_or_insert(PodError::Create(error));
                }
            }
        }

        done
    }

    fn created(&self, owner: &Owner, made: &Written) {
        self.written.note_version(&owner.key, PODS, made.version);
        let text = format!("Created pod: {}", made.name);
        self.recorder.normal(&owner.about, "SuccessfulCreate", text);
    }

    /// Deletes pods whose deletion is expected, all at once.
    pub async fn delete(&self, owner: &Owner, victims: &[Arc<Cached<Pod>>]) -> Done {
        let pods = self.pods_in(&owner.key.namespace);
        let deletions = victims
            .iter()
            .map(|pod| deletion(&pods, &pod.uid, &pod.key.name));

        let mut done = Done::default();
        for (pod, deleted) in victims.iter().zip(concurrently(deletions).await) {
            let is_certain = !deleted.as_ref().is_err_and(Error::is_uncertain);
            match self.deleted(owner, &pod.uid, &pod.key.name, deleted) {
                Ok(()) => done.count += 1,
                Err(error) => {
                    done.kept.extend(is_certain.then(|| pod.uid.clone()));
                    self.recorder.warning(
                        &owner.about,
                        "FailedDelete",
                        format!("Error deleting: {error}"),
                    );
                    done.failure.get_or_insert(PodError::Delete(error));
                }
            }
        }

        done
    }

    /// Retries deletions with unknown outcome before anything is decided on the observed pods:
    /// deleting the same pod twice does no harm.
    async fn delete_again(&self, owner: &Owner) -> Result<(), PodError> {
        let pods = self.pods_in(&owner.key.namespace);
        let uncertain = self.unobserved.take_uncertain(&owner.controller.uid);
        let deletions = uncertain
            .iter()
            .map(|(uid, name)| deletion(&pods, uid, name));
        let mut failed = Ok(());
        for ((uid, name), deleted) in uncertain.iter().zip(concurrently(deletions).await) {
            failed = failed.and(self.deleted(owner, uid, name, deleted));
        }
        failed.map_err(PodError::Delete)
    }

    /// Handles the result of a deletion: it stays expected unless it certainly will not be
    /// observed.
    fn deleted(
        &self,
        owner: &Owner,
        uid: &Text,
        name: &Text,
        deleted: Result<Deleted, Error>,
    ) -> Result<(), Error> {
        let owner_uid = &owner.controller.uid;
        match deleted {
            Ok(_) => {
                let text = format!("Deleted pod: {name}");
                self.recorder.normal(&owner.about, "SuccessfulDelete", text);
                Ok(())
            }
            // It is deleted or replaced: either way this pod need not be deleted.
            Err(error) if error.is_not_found() || error.is_conflict() => {
                self.unobserved
                    .expectations
                    .deletion_observed(owner_uid, uid);
                Ok(())
            }
            Err(error) if error.is_uncertain() => {
                self.unobserved.note_uncertain(owner_uid, uid, name);
                Err(error)
            }
            Err(error) => {
                self.unobserved
                    .expectations
                    .deletion_observed(owner_uid, uid);
                Err(error)
            }
        }
    }
}

/// Deletes a pod by UID.
fn deletion(
    pods: &Access,
    uid: &Text,
    name: &Text,
) -> impl Future<Output = Result<Deleted, Error>> + Send + 'static {
    let (pods, name, only) = (pods.clone(), name.clone(), DeleteOptions::only(uid));
    async move { pods.delete(&name, &only).await }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use coracle_client::{Client, Resource, Tasks};
    use coracle_testkit::objects::{pod, replica_set};
    use coracle_testkit::{Cluster, Outcome, intercept};

    use super::*;

    /// Pods of a ReplicaSet in a cluster, with their expectations.
    struct Tried {
        cluster: Cluster,
        control: PodControl,
        unobserved: Arc<Unobserved>,
        owner: Owner,
    }

    impl Tried {
        async fn with(client: impl FnOnce(&Cluster) -> Client) -> Tried {
            let cluster = Cluster::start().await;
            let client = client(&cluster);
            let sets = client.resource(&Resource::builtin("apps", "v1", "replicasets"));
            let set = sets
                .clone()
                .namespace("default")
                .create(&replica_set("web", 3))
                .await
                .unwrap();

            let unobserved = Arc::new(Unobserved::default());
            let recorder = Recorder::new(&cluster.client(), "test", &Tasks::new());
            let pods = client.resource(&Resource::builtin("", "v1", "pods"));
            let control = PodControl::new(sets, pods, unobserved.clone(), Arc::default(), recorder);

            Tried {
                control,
                unobserved,
                owner: Owner::named(&set, "apps/v1", "ReplicaSet"),
                cluster,
            }
        }

        fn is_settled(&self) -> bool {
            self.unobserved
                .expectations
                .satisfied(&self.owner.controller.uid)
        }

        async fn made(&self) -> Arc<Cached<Pod>> {
            let pods = self
                .cluster
                .client()
                .resource(&Resource::builtin("", "v1", "pods"))
                .namespace("default");
            Arc::new(Cached::of(pods.create(&pod("one")).await.unwrap()).unwrap())
        }
    }

    #[tokio::test]
    async fn what_is_refused_and_what_is_not_tried_is_not_waited_for() {
        let tried = Tried::with(Cluster::client).await;

        // A pod without containers is rejected, and then the others are not tried.
        let mut refused = pod("refused");
        refused.as_object_mut().unwrap().remove("spec");
        let refused = Arc::new(refused);
        tried.control.expect(&tried.owner, 5, &[]);
        assert!(
            !tried.is_settled(),
            "it is waited for before the first is tried"
        );

        let done = tried.control.create(&tried.owner, &vec![refused; 5]).await;
        assert!(matches!(done.failure, Some(PodError::Create(_))) && done.count == 0);
        assert!(tried.is_settled());

        let gone = tried.made().await;
        tried
            .control
            .pods_in("default")
            .delete("one", &DeleteOptions::default())
            .await
            .unwrap();

        tried
            .control
            .expect(&tried.owner, 0, std::slice::from_ref(&gone));
        assert!(!tried.is_settled());

        let done = tried.control.delete(&tried.owner, &[gone]).await;
        assert!(
            done.failure.is_none() && done.count == 1,
            "{:?}",
            done.failure
        );

        assert!(
            tried.is_settled(),
            "no event follows a deletion that was over before"
        );

        tried.cluster.stop().await;
    }

    #[tokio::test]
    async fn a_deletion_without_an_answer_is_asked_for_again_and_waited_for() {
        let losing = |cluster: &Cluster| {
            let lost = AtomicBool::new(false);
            let way = intercept(cluster.transport(), move |request| {
                match request.method().as_str() {
                    "DELETE" if !lost.swap(true, Ordering::Relaxed) => Outcome::LoseResponse,
                    _ => Outcome::Pass,
                }
            });
            Client::new(way, cluster.world)
        };
        let tried = Tried::with(losing).await;

        let victim = tried.made().await;
        tried
            .control
            .expect(&tried.owner, 0, std::slice::from_ref(&victim));

        let done = tried
            .control
            .delete(&tried.owner, std::slice::from_ref(&victim))
            .await;
        assert!(matches!(done.failure, Some(PodError::Delete(_))));

        assert!(done.kept.is_empty(), "its deletion is uncertain");
        assert!(
            tried
                .unobserved
                .expectations
                .pending_deletions(&tried.owner.controller.uid)
                .contains(&victim.uid)
        );

        tried
            .control
            .claim(&tried.owner, &Claims::default(), &[])
            .await
            .unwrap();

        assert!(tried.is_settled(), "it was gone already");

        tried.cluster.stop().await;
    }
}
