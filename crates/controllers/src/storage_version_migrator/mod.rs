//! Storage version migrator: writes all objects of a resource again, so that the store has them in
//! the present storage version.
//!
//! An object is rewritten by applying a configuration that has nothing but its identity. Its uid and
//! resource version are in it, so an object that was written, deleted or created anew meanwhile is a
//! conflict: it is in the new version already, or gone.

mod definition;
pub mod plan;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use coracle_api::gates::is_on;
use coracle_api::time::{Time, Timestamp};
use coracle_api::{Map, Text, Value};
use coracle_client::discovery::ServedResource;
use coracle_client::{
    Access, Cached, Client, Error, Informer, ListOptions, ObjectKey, Patch, Resource, Whole,
    WorkQueue, World,
};

use crate::framework::{
    Context, Controller, Feeds, Observation, Requeue, Resources, Runner, allows, preferred,
};
use plan::{Plan, Rank};

/// The service account.
pub(crate) const ACCOUNT: &str = "storage-version-migrator-controller";

const GATE: &str = "StorageVersionMigrator";

/// Upstream's number of workers.
const WORKERS: usize = 5;
/// What a resource must support.
const VERBS: [&str; 3] = ["update", "patch", "list"];
/// A resource that is not served may be one that will be soon.
const PATIENCE_SECONDS: i64 = 60;
/// Until it is looked for again.
const RETRY: Duration = Duration::from_secs(5);
/// No namespace has this name: a list of it has no objects, but a resource version.
const NO_NAMESPACE: &str = "fake-ns-for-svm";

/// The controller.
pub struct Migrator {
    migrations: Informer<Whole>,
    access: Access,
    client: Client,
    resources: Resources,
    world: World,
}

/// Why a step of a migration has to be repeated.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    /// The migration could not be written.
    #[error("cannot write the status of the migration")]
    Status(#[source] Error),
    /// The definition could not be read or written.
    #[error("cannot mark the definition as migrating")]
    Definition(#[source] Error),
    /// The objects could not be listed.
    #[error("cannot list the objects to migrate")]
    List(#[source] Error),
    /// An object could not be written now.
    #[error("cannot write an object")]
    Object(#[source] Error),
}

/// Runs the controller. Never returns, unless the feature is off.
pub async fn run(context: &Context) {
    if !is_on(GATE) {
        return;
    }

    let queue = WorkQueue::new("storage-version-migrator-controller");
    let mut feeds = Feeds::new();
    let resource = Resource::builtin(
        "storagemigration.k8s.io",
        "v1beta1",
        "storageversionmigrations",
    );
    let migrations: Informer<Whole> = context.informers.of(&resource);

    let (concerned, known) = (queue.clone(), migrations.clone());
    feeds.follow(&migrations, move |change| {
        // One that ends or goes lets another one of its resource begin.
        let Some(changed) = change.object().map(|changed| resource_of(&changed.object)) else {
            return;
        };
        for migration in known.list() {
            if resource_of(&migration.object) == changed {
                concerned.add(migration.key.clone());
            }
        }
    });

    let client = context.client(ACCOUNT);
    let controller = Migrator {
        migrations,
        access: client.resource(&resource).subresource("status"),
        resources: context.resources(),
        world: context.world,
        client,
    };
    Runner::new(controller, queue, context)
        .run(feeds, WORKERS)
        .await;
}

/// A migration, and the others of its resource.
pub struct Observed {
    migration: Arc<Cached<Whole>>,
    others: Vec<Rank>,
}

#[async_trait]
impl Controller for Migrator {
    type Key = ObjectKey;
    type Observed = Observed;
    type Plan = Plan;
    type Error = ActError;

    const NAME: &'static str = "storage-version-migrator-controller";

    fn observe(&self, key: &ObjectKey) -> Observation<Observed> {
        let Some(migration) = self.migrations.get(key) else {
            return Observation::Absent;
        };

        let of = resource_of(&migration.object);
        let others = self
            .migrations
            .list()
            .into_iter()
            .filter(|other| other.key != *key && resource_of(&other.object) == of);
        let others = others.map(|other| Rank::of(&other.object)).collect();
        Observation::Present {
            uid: migration.uid.clone(),
            observed: Observed { migration, others },
        }
    }

    fn plan(observed: &Observed, _: Timestamp) -> Plan {
        plan::plan(&observed.migration.object, &observed.others)
    }

    async fn act(
        &self,
        _: &ObjectKey,
        observed: Observed,
        plan: Plan,
    ) -> Result<Requeue, ActError> {
        let migration = Value::clone(&observed.migration.object);
        match plan {
            Plan::Keep => Ok(Requeue::OnEvent),
            Plan::Start => self.start(migration).await,
            Plan::Locate => self.locate(migration).await,
            Plan::Migrate { revision } => self.migrate(migration, revision).await,
            Plan::End => self.end(migration).await,
        }
    }
}

/// Group and plural of what is migrated.
fn resource_of(migration: &Value) -> (Text, Text) {
    let part = |name: &str| {
        let found = migration.at(&["spec", "resource", name]);
        Text::new(found.and_then(Value::as_str).unwrap_or_default())
    };
    (part("group"), part("resource"))
}

impl Migrator {
    async fn start(&self, migration: Value) -> Result<Requeue, ActError> {
        let running = definition::Progress::Running(migration.meta().name().to_owned());
        definition::mark(&self.client, &resource_of(&migration), &running, self.world)
            .await
            .map_err(ActError::Definition)?;
        let condition = self.condition(
            "Running",
            "True",
            "MigrationRunning",
            "The migration is running",
        );
        self.write(migration, condition).await
    }

    async fn end(&self, migration: Value) -> Result<Requeue, ActError> {
        let ended = definition::Progress::Ended {
            has_succeeded: plan::is_true(&migration, "Succeeded"),
        };
        definition::mark(&self.client, &resource_of(&migration), &ended, self.world)
            .await
            .map_err(ActError::Definition)?;
        let condition = self.condition(
            "Running",
            "False",
            "MigrationCompleted",
            "Migration completed",
        );
        self.write(migration, condition).await
    }

    /// Notes the resource version of the newest objects.
    async fn locate(&self, migration: Value) -> Result<Requeue, ActError> {
        let Some(served) = self.served(&migration).await else {
            return self
                .wait_or_fail(migration, "resource does not exist in discovery")
                .await;
        };
        if !allows(&served, &VERBS) {
            let (group, plural) = resource_of(&migration);
            let version = &served.resource.version;
            let why = format!(
                "resource \"{group}/{version}, Resource={plural}\" does not support discovery operations: [{}]",
                VERBS.join(" ")
            );
            return self.fail(migration, &why).await;
        }

        let objects = self.client.resource(&served.resource).metadata_only();
        let objects = match served.resource.namespaced {
            true => objects.namespace(NO_NAMESPACE),
            false => objects,
        };
        let options = ListOptions {
            limit: 1,
            ..ListOptions::default()
        };
        let list = objects.list(&options).await.map_err(ActError::List)?;

        let mut located = migration;
        if let Some(migration) = located.as_object_mut() {
            migration
                .object_mut("status")
                .insert("resourceVersion", list.resource_version);
        }
        self.update(&located).await
    }

    async fn migrate(&self, migration: Value, revision: u64) -> Result<Requeue, ActError> {
        let Some(served) = self.served(&migration).await else {
            return self
                .wait_or_fail(migration, "unable to obtain GVR from discovery")
                .await;
        };

        let objects = self.client.resource(&served.resource);
        let list = objects.clone().metadata_only();
        let list = list.list_all(&ListOptions::default()).await;
        for object in list.map_err(ActError::List)?.items {
            let written: Result<u64, _> = object.meta().resource_version().parse();
            if written.is_ok_and(|written| written > revision) {
                continue;
            }

            match self.rewrite(&objects, &served.resource, &object).await {
                Ok(()) => {}
                Err(error) if is_passing(&error) => return Err(ActError::Object(error)),
                Err(error) => {
                    let why = format!("migration encountered unhandled error: {error}");
                    return self.fail(migration, &why).await;
                }
            }
        }

        let condition = self.condition("Succeeded", "True", "StorageVersionMigrationSucceeded", "");
        self.write(migration, condition).await
    }

    async fn rewrite(
        &self,
        objects: &Access,
        resource: &Resource,
        object: &Value,
    ) -> Result<(), Error> {
        let meta = object.meta();
        let mut metadata = Map::new();
        metadata.insert("uid", meta.uid());
        metadata.insert("resourceVersion", meta.resource_version());
        let mut identity = Map::new();
        identity.insert("apiVersion", resource.api_version());
        identity.insert("kind", resource.kind.clone());
        identity.insert("metadata", metadata);

        let patch = Patch::Apply {
            object: Value::Object(identity),
            manager: Self::NAME.to_owned(),
            force: false,
        };
        let objects = objects.clone().namespace(meta.namespace());
        match objects.patch(meta.name(), &patch).await {
            Err(error) if error.is_conflict() => Ok(()),
            done => done.map(drop),
        }
    }

    /// The resource that is migrated, in the version that its group prefers.
    async fn served(&self, migration: &Value) -> Option<ServedResource> {
        let (group, plural) = resource_of(migration);
        let served = self.resources.clone().now().await;
        let mut all = preferred(&served).into_iter();
        let found = all.find(|one| one.resource.group == group && one.resource.plural == plural);
        found.cloned()
    }

    /// A resource that does not exist may be created in the next minute.
    async fn wait_or_fail(&self, migration: Value, why: &str) -> Result<Requeue, ActError> {
        let created = migration.meta().creation_timestamp();
        let patience_ends = created.map(|created| created.plus_seconds(PATIENCE_SECONDS));
        if patience_ends.is_some_and(|end| (self.world.now)() < end) {
            return Ok(Requeue::After(RETRY));
        }
        self.fail(migration, why).await
    }

    async fn fail(&self, migration: Value, why: &str) -> Result<Requeue, ActError> {
        let condition = self.condition("Failed", "True", "StorageVersionMigrationFailed", why);
        self.write(migration, condition).await
    }

    fn condition(&self, kind: &str, status: &str, reason: &str, message: &str) -> Map {
        let mut condition = Map::new();
        condition.insert("type", kind);
        condition.insert("status", status);
        condition.insert("lastTransitionTime", Time((self.world.now)()).text());
        condition.insert("reason", reason);
        condition.insert("message", message);
        condition
    }

    async fn write(&self, mut migration: Value, condition: Map) -> Result<Requeue, ActError> {
        if let Some(migration) = migration.as_object_mut() {
            let status = migration.object_mut("status");
            let mut conditions = status.items("conditions").to_vec();
            conditions.retain(|old| old.get("type") != condition.get("type"));
            conditions.push(Value::Object(condition));
            status.insert("conditions", conditions);
        }
        self.update(&migration).await
    }

    async fn update(&self, migration: &Value) -> Result<Requeue, ActError> {
        match self.access.update(migration).await {
            Err(error) if error.is_not_found() => Ok(Requeue::OnEvent),
            done => done.map(|_| Requeue::OnEvent).map_err(ActError::Status),
        }
    }
}

/// Whether a request that failed may succeed when it is repeated.
fn is_passing(error: &Error) -> bool {
    error.is_busy()
        || error.is_unreachable()
        || error.is_uncertain()
        || matches!(
            error.reason(),
            "ServerTimeout" | "Timeout" | "InternalError"
        )
}
