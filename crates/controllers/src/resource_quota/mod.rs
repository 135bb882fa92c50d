//! The quota controller: what a namespace uses of what its quotas limit.
//!
//! What is made is charged where it is admitted; this controller sums up what there is when a quota
//! comes or changes, and when something goes or ends that a quota counts. A while after a charge it
//! sums up once more, for what was charged and then not made. The objects are asked of the server,
//! so that a sum is never older than the quota that it is written to.

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

use crate::frame::{
    Context, Controller, Feeds, Monitors, Observation, Requeue, Resources, Shell, allows, preferred,
};
use crate::views::{Owned, Phase, Pod};
use plan::{Found, Of, only_counts, speaks_of, status, used};

/// So long after it was charged a quota is summed up.
const AFTER_CHARGE: Duration = Duration::from_secs(30);

/// The controller.
pub struct ResourceQuotas {
    quotas: Informer<Whole>,
    access: Access,
    client: Client,
    resources: Resources,
    world: World,
}

/// Why a quota could not be brought up to date.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    /// What it counts could not be listed.
    #[error("cannot list {0}")]
    List(String, #[source] Error),
    /// Its status could not be written.
    #[error("cannot write the status")]
    Status(#[source] Error),
}

/// Begins the controller, with so many workers. Never returns.
pub async fn run(context: &Context, workers: usize) {
    let queue = WorkQueue::new("resourcequota_primary");
    let mut feeds = Feeds::new();
    let controller = ResourceQuotas::new(context, &queue, &mut feeds);

    let heard = Replenished {
        quotas: controller.quotas.clone(),
        queue: queue.clone(),
    };
    let pods = heard.clone();
    feeds.follow(
        &context.informers.of(&Resource::builtin("", "v1", "pods")),
        move |change| pods.hear_pod(change),
    );

    let mut monitors = Monitors::new(context, quotable, move |of, change| heard.hear(of, change));
    monitors.begin().await;
    let work = Shell::new(controller, queue, context).run(feeds, workers);
    tokio::join!(work, monitors.follow());
}

impl ResourceQuotas {
    /// The controller, whose feeds fill `queue`.
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

        let client = context.client("resourcequota-controller");
        let access = client.resource(&resource);

        ResourceQuotas {
            quotas,
            access,
            client,
            resources: context.resources(),
            world: context.world,
        }
    }

    /// Everything that a quota counts.
    async fn find(&self, quota: &Value, served: &Served) -> Result<Vec<Of>, ActError> {
        let mut found = Vec::new();
        for resource in countable(served) {
            let counter = Counter::of(&resource.group, &resource.plural);
            if speaks_of(quota, counter) {
                let failed = |error| ActError::List(resource.to_string(), error);
                let objects = self
                    .client
                    .resource(resource)
                    .namespace(quota.meta().namespace());

                let objects = count(&objects, only_counts(quota, counter))
                    .await
                    .map_err(failed)?;

                let (group, plural) = (resource.group.to_string(), resource.plural.to_string());
                found.push(Of {
                    group,
                    plural,
                    found: objects,
                });
            }
        }

        Ok(found)
    }
}

/// The objects of a resource, or only how many there are.
async fn count(objects: &Access, only_count: bool) -> Result<Found, Error> {
    if !only_count {
        return Ok(Found::Objects(
            objects.list_all(&ListOptions::default()).await?.items,
        ));
    }

    // One is shown, and the server says how many there are besides.
    let one = ListOptions {
        limit: 1,
        ..ListOptions::default()
    };
    let page = objects.clone().metadata_only().list(&one).await?;

    let shown = i64::try_from(page.items.len()).unwrap_or(i64::MAX);
    match (page.continue_token.is_empty(), page.remaining) {
        (true, _) => Ok(Found::Count(shown)),
        (false, Some(remaining)) => Ok(Found::Count(shown.saturating_add(remaining))),
        (false, None) => {
            let all = objects
                .clone()
                .metadata_only()
                .list_all(&ListOptions::default())
                .await?;
            Ok(Found::Count(
                i64::try_from(all.items.len()).unwrap_or(i64::MAX),
            ))
        }
    }
}

/// What can be counted: all that can be made in a namespace.
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

/// What is watched for going. Pods also end, which their metadata do not say: they are heard apart.
fn quotable(served: &Served) -> Vec<&Resource> {
    countable(served)
        .filter(|resource| !(resource.group.is_empty() && resource.plural == "pods"))
        .collect()
}

/// Which quotas get something back.
#[derive(Clone)]
struct Replenished {
    quotas: Informer<Whole>,
    queue: WorkQueue<ObjectKey>,
}

impl Replenished {
    fn hear(&self, of: &Arc<Resource>, change: &Change<Owned>) {
        let counter = Counter::of(&of.group, &of.plural);
        let counts_more = counter.kind() != coracle_api::quota::Kind::Pieces;
        match change {
            Change::Deleted { object, .. } => self.wake(counter, &object.key.namespace),
            // One that only counts as a piece counts the same whatever it says.
            Change::Updated { new, .. } if counts_more => self.wake(counter, &new.key.namespace),
            _ => {}
        }
    }

    fn hear_pod(&self, change: &Change<Pod>) {
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
        for quota in quotas.iter().filter(|quota| speaks_of(quota, counter)) {
            self.queue.add(quota.key.clone());
        }
    }
}

#[async_trait]
impl Controller for ResourceQuotas {
    type Key = ObjectKey;
    type Observed = Arc<Cached<Whole>>;
    /// What is used can only be asked of the server, so everything is decided after that, by
    /// [`plan::status`].
    type Plan = ();
    type Error = ActError;

    const NAME: &'static str = "resourcequota-controller";

    fn observe(&self, key: &ObjectKey) -> Observation<Arc<Cached<Whole>>> {
        let Some(quota) = self.quotas.get(key) else {
            return Observation::Gone;
        };
        Observation::Seen {
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
