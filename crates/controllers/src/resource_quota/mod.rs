//! The quota controller: the usage of each ResourceQuota.
//!
//! Creations are charged by admission; this controller recomputes the usage when a quota is created
//! or changed, and when a counted object is deleted or ends. It also recomputes some time after a
//! charge, for objects that were charged and then not created. Objects are listed from the server,
//! so that the usage is never older than the quota that it is written to.

pub mod plan;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use coracle_api::Value;
use coracle_api::quota::Counter;
use coracle_api::time::Timestamp;
use coracle_client::discovery::{Served, ServedResource};
use coracle_client::{
    Access, Cached, Change, Client, Error, Informer, ListOptions, ObjectKey, Resource, Whole,
    WorkQueue, World,
};

use crate::framework::{
    Context, Controller, Feeds, Monitors, Observation, Requeue, Resources, Runner, allows,
    preferred,
};
use crate::views::{Owned, Phase, Pod};
use plan::{Counted, ResourceObjects, limits_resource, only_counts, status, used};

/// The service account.
pub(crate) const ACCOUNT: &str = "resourcequota-controller";

/// A quota is recomputed this long after a charge.
const AFTER_CHARGE: Duration = Duration::from_secs(30);

/// The controller.
pub struct ResourceQuotas {
    quotas: Informer<Whole>,
    access: Access,
    client: Client,
    resources: Resources,
    world: World,
}

/// Why a quota could not be updated.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    /// The counted objects could not be listed.
    #[error("cannot list {0}")]
    List(String, #[source] Error),
    /// The status could not be written.
    #[error("cannot update status")]
    Status(#[source] Error),
}

/// Runs the controller with `workers` workers. Never returns.
pub async fn run(context: &Context, workers: usize) {
    let queue = WorkQueue::new("resourcequota_primary");
    let mut feeds = Feeds::new();
    let controller = ResourceQuotas::new(context, &queue, &mut feeds);

    let replenished = Replenished {
        quotas: controller.quotas.clone(),
        queue: queue.clone(),
    };
    let pods = replenished.clone();
    feeds.follow(
        &context.informers.of(&Resource::builtin("", "v1", "pods")),
        move |change| pods.handle_pod(change),
    );

    let mut monitors = Monitors::new(context, watched, move |of, change| {
        replenished.handle(of, change)
    });
    monitors.begin().await;
    let work = Runner::new(controller, queue, context).run(feeds, workers);
    tokio::join!(work, monitors.follow());
}

impl ResourceQuotas {
    /// Creates the controller; its feeds fill `queue`.
    pub fn new(
        context: &Context,
        queue: &WorkQueue<ObjectKey>,
        feeds: &mut Feeds,
    ) -> ResourceQuotas {
        let resource = Resource::builtin("", "v1", "resourcequotas");
        let quotas: Informer<Whole> = context.informers.of(&resource);

        let concerned = queue.clone();
        feeds.follow(&quotas, move |change| match change {
            Change::Added { object, .. } => concerned.add(object.key.clone()),
            Change::Updated { old, new }
                if old.at(&["spec", "hard"]) != new.at(&["spec", "hard"]) =>
            {
                concerned.add(new.key.clone());
            }
            Change::Updated { new, .. } => concerned.add_after(new.key.clone(), AFTER_CHARGE),
            Change::Deleted { .. } | Change::Synced => {}
        });

        let client = context.client(ACCOUNT);
        let access = client.resource(&resource);

        ResourceQuotas {
            quotas,
            access,
            client,
            resources: context.resources(),
            world: context.world,
        }
    }

    /// Lists everything that a quota counts.
    async fn find(&self, quota: &Value, served: &Served) -> Result<Vec<ResourceObjects>, ActError> {
        let mut found = Vec::new();
        for resource in countable(served) {
            let counter = Counter::of(&resource.group, &resource.plural);
            if limits_resource(quota, counter) {
                let failed = |error| ActError::List(resource.to_string(), error);
                let objects = self
                    .client
                    .resource(resource)
                    .namespace(quota.meta().namespace());

                let objects = count(&objects, only_counts(quota, counter))
                    .await
                    .map_err(failed)?;

                let (group, plural) = (resource.group.to_string(), resource.plural.to_string());
                found.push(ResourceObjects {
                    group,
                    plural,
                    found: objects,
                });
            }
        }

        Ok(found)
    }
}

/// The objects of a resource, or only their number.
async fn count(objects: &Access, only_count: bool) -> Result<Counted, Error> {
    if !only_count {
        return Ok(Counted::Objects(
            objects.list_all(&ListOptions::default()).await?.items,
        ));
    }

    // The list is limited to one, and the server returns the remaining count.
    let one = ListOptions {
        limit: 1,
        ..ListOptions::default()
    };
    let page = objects.clone().metadata_only().list(&one).await?;

    let shown = i64::try_from(page.items.len()).unwrap_or(i64::MAX);
    match (page.continue_token.is_empty(), page.remaining) {
        (true, _) => Ok(Counted::Count(shown)),
        (false, Some(remaining)) => Ok(Counted::Count(shown.saturating_add(remaining))),
        (false, None) => {
            let all = objects
                .clone()
                .metadata_only()
                .list_all(&ListOptions::default())
                .await?;
            Ok(Counted::Count(
                i64::try_from(all.items.len()).unwrap_or(i64::MAX),
            ))
        }
    }
}

/// All resources that can be created in a namespace.
fn countable(served: &Served) -> impl Iterator<Item = &Resource> {
    let able = |one: &&ServedResource| {
        let counter = Counter::of(&one.resource.group, &one.resource.plural);
        one.resource.namespaced
            && allows(one, &["create", "list", "watch", "delete"])
            && !counter.is_ignored()
    };
    preferred(served)
        .into_iter()
        .filter(able)
        .map(|one| &one.resource)
}

/// The resources watched for deletions. Pods also end, which metadata do not show: they are
/// followed separately.
fn watched(served: &Served) -> Vec<&Resource> {
    countable(served)
        .filter(|resource| !(resource.group.is_empty() && resource.plural == "pods"))
        .collect()
}

/// Finds the quotas whose usage shrinks.
#[derive(Clone)]
struct Replenished {
    quotas: Informer<Whole>,
    queue: WorkQueue<ObjectKey>,
}

impl Replenished {
    fn handle(&self, of: &Arc<Resource>, change: &Change<Owned>) {
        let counter = Counter::of(&of.group, &of.plural);
        let counts_more = counter.kind() != coracle_api::quota::Kind::Objects;
        match change {
            Change::Deleted { object, .. } => self.wake(counter, &object.key.namespace),
            // If only the number counts, updates do not matter.
            Change::Updated { new, .. } if counts_more => self.wake(counter, &new.key.namespace),
            _ => {}
        }
    }

    fn handle_pod(&self, change: &Change<Pod>) {
        let counter = Counter::of("", "pods");
        let has_ended = |pod: &Cached<Pod>| matches!(pod.phase, Phase::Succeeded | Phase::Failed);
        match change {
            Change::Deleted { object, .. } => self.wake(counter, &object.key.namespace),
            Change::Updated { old, new } if has_ended(new) && !has_ended(old) => {
                self.wake(counter, &new.key.namespace);
            }
            _ => {}
        }
    }

    fn wake(&self, counter: Counter<'_>, namespace: &str) {
        let quotas = self.quotas.list_namespace(namespace);
        for quota in quotas
            .iter()
            .filter(|quota| limits_resource(quota, counter))
        {
            self.queue.add(quota.key.clone());
        }
    }
}

#[async_trait]
impl Controller for ResourceQuotas {
    type Key = ObjectKey;
    type Observed = Arc<Cached<Whole>>;
    /// Usage can only be read from the server, so everything is decided after that, by
    /// [`plan::status`].
    type Plan = ();
    type Error = ActError;

    const NAME: &'static str = "resourcequota-controller";

    fn observe(&self, key: &ObjectKey) -> Observation<Arc<Cached<Whole>>> {
        let Some(quota) = self.quotas.get(key) else {
            return Observation::Absent;
        };
        Observation::Present {
            uid: quota.uid.clone(),
            observed: quota,
        }
    }

    fn plan(_: &Arc<Cached<Whole>>, _: Timestamp) {}

    async fn act(
        &self,
        key: &ObjectKey,
        quota: Arc<Cached<Whole>>,
        (): (),
    ) -> Result<Requeue, ActError> {
        let served = self.resources.clone().now().await;
        let found = self.find(&quota, &served).await?;
        let used = used(&quota, &found, self.world.now());
        let Some(status) = status(&quota, &used) else {
            return Ok(Requeue::OnEvent);
        };

        let mut written = Value::clone(&quota.object);
        if let Some(members) = written.as_object_mut() {
            members.insert("status", status);
        }

        let statuses = self
            .access
            .clone()
            .namespace(&key.namespace)
            .subresource("status");

        match statuses.update(&written).await {
            Err(error) if error.is_not_found() => Ok(Requeue::OnEvent),
            done => done.map(|_| Requeue::OnEvent).map_err(ActError::Status),
        }
    }
}
