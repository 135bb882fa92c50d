//! The namespace controller: empties and finalizes deleted namespaces.
//!
//! `content` deletes what is in it, `plan` estimates how long the rest takes, `conditions` reports
//! it. When nothing remains, the finalizer that every namespace has is removed, and the server
//! deletes it.

pub mod conditions;
mod content;
pub mod plan;

use std::time::Duration;

use async_trait::async_trait;
use coracle_api::time::Timestamp;
use coracle_api::{Map, Value};
use coracle_client::queue::{BucketLimiter, ExponentialLimiter, MaxOf};
use coracle_client::{
    Access, Change, Client, Error, Informer, ObjectKey, Resource, WorkQueue, World, retry,
};
use tracing::debug;

use crate::framework::{Context, Controller, Feeds, Observation, Requeue, Resources, Runner};
use crate::views::{Owned, Pod};
use conditions::{Outcome, conditions};
use plan::Plan;

/// The service account.
pub(crate) const ACCOUNT: &str = "namespace-controller";

/// This long after a namespace was deleted all API servers know: nothing new is created in it.
const PROPAGATION_DELAY: Duration = Duration::from_secs(5);
/// A failed one is retried at the latest after this time.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(60);
/// The finalizer in the spec of every namespace.
const KUBERNETES: &str = "kubernetes";

/// The controller. Its keys are namespaces.
pub struct Namespaces {
    namespaces: Informer<Owned>,
    access: Access,
    client: Client,
    resources: Resources,
    world: World,
}

/// Why a namespace could not be emptied.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    /// The namespace could not be read.
    #[error("cannot read namespace")]
    Read(#[source] Error),
    /// The namespace could not be written.
    #[error("cannot update namespace")]
    Write(#[source] Error),
    /// Something could not be deleted.
    #[error("cannot delete all content: {0}")]
    Content(String),
}

/// Runs the controller with `workers` workers. Never returns.
pub async fn run(context: &Context, workers: usize) {
    let each = ExponentialLimiter::new(Duration::from_millis(5), MAX_RETRY_DELAY);
    let all = BucketLimiter(coracle_client::limit::TokenBucket::new(10.0, 100));
    let queue = WorkQueue::with_limiter(
        "namespace",
        Box::new(MaxOf(vec![Box::new(each), Box::new(all)])),
    );
    let mut feeds = Feeds::new();
    let controller = Namespaces::new(context, &queue, &mut feeds);
    Runner::new(controller, queue, context)
        .run(feeds, workers)
        .await;
}

impl Namespaces {
    /// Creates the controller; its feeds fill `queue`.
    pub fn new(context: &Context, queue: &WorkQueue<ObjectKey>, feeds: &mut Feeds) -> Namespaces {
        let resource = Resource::builtin("", "v1", "namespaces");
        let namespaces: Informer<Owned> = context.informers.of(&resource);
        let pods: Informer<Pod> = context.informers.of(&Resource::builtin("", "v1", "pods"));

        let concerned = queue.clone();
        feeds.follow(&namespaces, move |change| match change {
            Change::Added { object, .. } | Change::Updated { new: object, .. }
                if object.is_being_deleted =>
            {
                concerned.add_after(object.key.clone(), PROPAGATION_DELAY);
            }
            _ => {}
        });

        let (concerned, known, left) = (queue.clone(), namespaces.clone(), pods.clone());
        feeds.follow(&pods, move |change| {
            let Change::Deleted { object, .. } = change else {
                return;
            };
            let key = ObjectKey::cluster(&object.key.namespace);
            let is_going = known
                .get(&key)
                .is_some_and(|namespace| namespace.is_being_deleted);

            // The rest of a namespace waits for its last pod.
            if is_going && left.list_namespace(&key.name).is_empty() {
                concerned.add(key);
            }
        });

        let client = context.client(ACCOUNT);
        let access = client.resource(&resource);

        Namespaces {
            namespaces,
            access,
            client,
            resources: context.resources(),
            world: context.world,
        }
    }

    async fn carry_out(&self, name: &str) -> Result<Requeue, ActError> {
        let found = self.access.find(name).await.map_err(ActError::Read)?;
        let Some(namespace) = found else {
            return Ok(Requeue::OnEvent);
        };
        let Some(deleted_at) = namespace.meta().deletion_timestamp() else {
            return Ok(Requeue::OnEvent);
        };

        let namespace = self.set_terminating(namespace).await?;
        if finalizers(&namespace).is_empty() {
            return Ok(Requeue::OnEvent);
        }

        let served = self.resources.clone().now().await;
        let outcome = self.empty(name, deleted_at, &served).await;
        self.update_conditions(&namespace, &outcome).await;

        if !outcome.failures.is_empty() || !outcome.undiscovered.is_empty() {
            let undiscovered = outcome
                .undiscovered
                .iter()
                .map(|(which, why)| format!("{which}: {why}"));

            let all: Vec<String> = outcome
                .failures
                .iter()
                .cloned()
                .chain(undiscovered)
                .collect();

            return Err(ActError::Content(all.join(", ")));
        }

        match outcome.estimate() {
            0 => self.finalize(&namespace).await,
            estimate => Ok(Requeue::After(plan::requeue_after(estimate))),
        }
    }

    /// Sets the phase `Terminating`.
    async fn set_terminating(&self, mut namespace: Value) -> Result<Value, ActError> {
        if namespace.at(&["status", "phase"]).and_then(Value::as_str) == Some("Terminating") {
            return Ok(namespace);
        }
        status(&mut namespace).insert("phase", "Terminating");
        self.access
            .clone()
            .subresource("status")
            .update(&namespace)
            .await
            .map_err(ActError::Write)
    }

    /// Writes the conditions. A failure is left to the next reconcile.
    async fn update_conditions(&self, namespace: &Value, outcome: &Outcome) {
        let before = namespace
            .at(&["status", "conditions"])
            .and_then(Value::as_array)
            .unwrap_or_default();

        let Some(conditions) = conditions(before, outcome, self.world.now()) else {
            return;
        };
        let mut updated = namespace.clone();
        status(&mut updated).insert("conditions", conditions);

        if let Err(error) = self
            .access
            .clone()
            .subresource("status")
            .update(&updated)
            .await
        {
            debug!(namespace = namespace.meta().name(), %error, "cannot update namespace conditions");
        }
    }

    /// Removes the finalizer: the server deletes the namespace with it.
    async fn finalize(&self, emptied: &Value) -> Result<Requeue, ActError> {
        let (name, uid) = (emptied.meta().name(), emptied.meta().uid());
        let attempt = || async {
            let live = self
                .access
                .find(name)
                .await?
                .filter(|live| live.meta().uid() == uid);

            let Some(mut live) = live else { return Ok(()) };
            let others: Vec<Value> = finalizers(&live)
                .iter()
                .filter(|one| one.as_str() != Some(KUBERNETES))
                .cloned()
                .collect();

            if let Some(spec) = live.as_object_mut().map(|live| live.object_mut("spec")) {
                spec.insert("finalizers", others);
            }

            match self
                .access
                .clone()
                .subresource("finalize")
                .update(&live)
                .await
            {
                Err(error) if error.is_not_found() => Ok(()),
                done => done.map(drop),
            }
        };

        retry::on_conflict(self.world, attempt)
            .await
            .map_err(ActError::Write)?;

        Ok(Requeue::OnEvent)
    }
}

fn finalizers(namespace: &Value) -> &[Value] {
    namespace
        .at(&["spec", "finalizers"])
        .and_then(Value::as_array)
        .unwrap_or_default()
}

fn status(namespace: &mut Value) -> &mut Map {
    namespace
        .as_object_mut()
        .expect("the server returns objects")
        .object_mut("status")
}

#[async_trait]
impl Controller for Namespaces {
    type Key = ObjectKey;
    type Observed = bool;
    type Plan = Plan;
    type Error = ActError;

    const NAME: &'static str = "namespace-controller";

    fn observe(&self, key: &ObjectKey) -> Observation<bool> {
        let Some(namespace) = self.namespaces.get(key) else {
            return Observation::Absent;
        };
        Observation::Present {
            uid: namespace.uid.clone(),
            observed: namespace.is_being_deleted,
        }
    }

    fn plan(is_being_deleted: &bool, _: Timestamp) -> Plan {
        if *is_being_deleted {
            Plan::Empty
        } else {
            Plan::Keep
        }
    }

    async fn act(&self, key: &ObjectKey, _: bool, plan: Plan) -> Result<Requeue, ActError> {
        match plan {
            Plan::Keep => Ok(Requeue::OnEvent),
            Plan::Empty => self.carry_out(&key.name).await,
        }
    }
}
