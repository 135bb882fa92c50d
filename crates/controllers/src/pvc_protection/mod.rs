//! PersistentVolumeClaim protection: a claim in use by pods is not deleted.

pub mod plan;
pub mod user;

use async_trait::async_trait;
use coracle_api::time::Timestamp;
use coracle_api::{Text, Value};
use coracle_client::{
    Access, Cached, Change, Error, Informer, ListOptions, ObjectKey, Resource, Whole, WorkQueue,
};

use crate::framework::{Context, Controller, Feeds, Observation, Requeue, Runner};
use plan::{FINALIZER, Observed, Plan, holds};
use user::User;

/// The service account.
pub(crate) const ACCOUNT: &str = "pvc-protection-controller";

/// The index of pods by the claims that they use.
const BY_CLAIM: &str = "pod-pvc-index";

/// The controller.
pub struct PvcProtection {
    claims: Informer<Whole>,
    pods: Informer<User>,
    claim_access: Access,
    pod_access: Access,
}

/// Why a claim could not be processed.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    /// Its pods could not be listed.
    #[error("cannot list pods")]
    List(#[source] Error),
    /// The claim could not be written.
    #[error("cannot update persistent volume claim")]
    Write(#[source] Error),
}

/// Runs the controller. Never returns.
pub async fn run(context: &Context) {
    let queue = WorkQueue::new("pvcprotection");
    let mut feeds = Feeds::new();
    let controller = PvcProtection::new(context, &queue, &mut feeds);
    Runner::new(controller, queue, context).run(feeds, 1).await;
}

impl PvcProtection {
    /// Creates the controller; its feeds fill `queue`.
    pub fn new(
        context: &Context,
        queue: &WorkQueue<ObjectKey>,
        feeds: &mut Feeds,
    ) -> PvcProtection {
        let (claims_of, pods_of) = (
            Resource::builtin("", "v1", "persistentvolumeclaims"),
            Resource::builtin("", "v1", "pods"),
        );
        let claims: Informer<Whole> = context.informers.of(&claims_of);

        let pods: Informer<User> = context.informers.of(&pods_of);
        pods.ensure_index(BY_CLAIM, |pod: &Cached<User>| {
            let place = |claim: &Text| Text::from(format!("{}/{claim}", pod.key.namespace));
            pod.all().map(place).collect()
        });

        let concerned = queue.clone();
        feeds.follow(&claims, move |change| {
            if let Some(claim) = change.object() {
                concerned.add(claim.key.clone());
            }
        });

        let concerned = queue.clone();
        feeds.follow(&pods, move |change| {
            let is_gone = matches!(change, Change::Deleted { .. });
            let Some(pod) = change.object().filter(|pod| is_gone || pod.may_release()) else {
                return;
            };
            for claim in pod.all() {
                concerned.add(ObjectKey::new(&pod.key.namespace, claim));
            }
        });

        let client = context.client(ACCOUNT);
        PvcProtection {
            claims,
            pods,
            claim_access: client.resource(&claims_of),
            pod_access: client.resource(&pods_of),
        }
    }

    /// Whether a pod on the server uses the claim: the informer may be behind.
    async fn is_used(&self, claim: &Value) -> Result<bool, ActError> {
        let pods = self.pod_access.clone().namespace(claim.meta().namespace());
        let pods = pods
            .list_all(&ListOptions::default())
            .await
            .map_err(ActError::List)?
            .items;
        Ok(pods
            .iter()
            .any(|pod| holds(&User::of(pod), pod.meta().uid(), claim)))
    }
}

#[async_trait]
impl Controller for PvcProtection {
    type Key = ObjectKey;
    type Observed = Observed;
    type Plan = Plan;
    type Error = ActError;

    const NAME: &'static str = "persistentvolumeclaim-protection-controller";

    fn observe(&self, key: &ObjectKey) -> Observation<Observed> {
        let Some(claim) = self.claims.get(key) else {
            return Observation::Absent;
        };
        let users = self.pods.by_index(BY_CLAIM, &key.to_string());
        let users = users.expect("the index is created with the controller");
        Observation::Present {
            uid: claim.uid.clone(),
            observed: Observed { claim, users },
        }
    }

    fn plan(observed: &Observed, _: Timestamp) -> Plan {
        plan::plan(observed)
    }

    async fn act(
        &self,
        key: &ObjectKey,
        observed: Observed,
        plan: Plan,
    ) -> Result<Requeue, ActError> {
        let mut claim = Value::clone(&observed.claim.object);
        match plan {
            Plan::Keep => return Ok(Requeue::OnEvent),
            Plan::Protect => drop(claim.meta_mut().add_finalizer(FINALIZER)),
            Plan::Release if self.is_used(&claim).await? => return Ok(Requeue::OnEvent),
            Plan::Release => drop(claim.meta_mut().remove_finalizer(FINALIZER)),
        }

        match self
            .claim_access
            .clone()
            .namespace(&key.namespace)
            .update(&claim)
            .await
        {
            Err(error) if error.is_not_found() => Ok(Requeue::OnEvent),
            done => done.map(|_| Requeue::OnEvent).map_err(ActError::Write),
        }
    }
}
