//! Storage version garbage collector: a StorageVersion names only API servers that have a lease.

pub mod plan;

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use coracle_api::gates::is_on;
use coracle_api::time::{Time, Timestamp};
use coracle_api::{Text, Value};
use coracle_client::{
    Access, Cached, DeleteOptions, Error, Informer, ObjectKey, Resource, Selection, Whole,
    WorkQueue,
};

use crate::framework::{Context, Controller, Feeds, Observation, Requeue, Runner};
use crate::write_status::write_status;
use plan::Plan;

/// The service account.
pub(crate) const ACCOUNT: &str = "storage-version-garbage-collector";

const NAMESPACE: &str = "kube-system";
const IDENTITY: &str = "apiserver.kubernetes.io/identity=kube-apiserver";

/// The controller.
pub struct StorageVersionGarbage {
    versions: Informer<Whole>,
    leases: Informer<Whole>,
    access: Access,
}

/// A StorageVersion, and the servers that are there.
pub struct Observed {
    version: Arc<Cached<Whole>>,
    servers: BTreeSet<Text>,
}

/// The StorageVersion could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write or delete the storage version")]
pub struct ActError(#[source] Error);

/// Runs the controller. Never returns, unless the feature is off.
pub async fn run(context: &Context) {
    if !is_on("StorageVersionAPI") || !is_on("APIServerIdentity") {
        return;
    }

    let queue = WorkQueue::new("storage_version_garbage_collector");
    let mut feeds = Feeds::new();
    let resource = Resource::builtin("internal.apiserver.k8s.io", "v1alpha1", "storageversions");
    let versions: Informer<Whole> = context.informers.of(&resource);
    let leases = Resource::builtin("coordination.k8s.io", "v1", "leases");
    let leases = Selection::all(&leases)
        .namespace(NAMESPACE)
        .labels(IDENTITY);
    let leases: Informer<Whole> = context.informers.of(leases);

    let concerned = queue.clone();
    feeds.follow(&versions, move |change| {
        if let Some(version) = change.object() {
            concerned.add(version.key.clone());
        }
    });
    let (concerned, known) = (queue.clone(), versions.clone());
    feeds.follow(&leases, move |_| {
        for version in known.list() {
            concerned.add(version.key.clone());
        }
    });

    let controller = StorageVersionGarbage {
        versions,
        leases,
        access: context.client(ACCOUNT).resource(&resource),
    };
    Runner::new(controller, queue, context).run(feeds, 1).await;
}

#[async_trait]
impl Controller for StorageVersionGarbage {
    type Key = ObjectKey;
    type Observed = Observed;
    type Plan = Plan;
    type Error = ActError;

    const NAME: &'static str = "storageversion-garbage-collector-controller";

    fn observe(&self, key: &ObjectKey) -> Observation<Observed> {
        let Some(version) = self.versions.get(key) else {
            return Observation::Absent;
        };
        let servers = self.leases.list().into_iter();
        let servers = servers.map(|lease| lease.key.name.clone()).collect();
        Observation::Present {
            uid: version.uid.clone(),
            observed: Observed { version, servers },
        }
    }

    fn plan(observed: &Observed, now: Timestamp) -> Plan {
        let is_alive = |name: &str| observed.servers.contains(name);
        plan::plan(&observed.version.object, is_alive, Time(now))
    }

    async fn act(
        &self,
        key: &ObjectKey,
        observed: Observed,
        plan: Plan,
    ) -> Result<Requeue, ActError> {
        let version: &Value = &observed.version.object;
        let written = match plan {
            Plan::Keep => Ok(()),
            Plan::Delete => {
                let options = DeleteOptions::default();
                match self.access.delete(&key.name, &options).await {
                    Err(error) if error.is_not_found() => Ok(()),
                    done => done.map(drop),
                }
            }
            Plan::Update(status) => write_status(&self.access, version, &status).await.map(drop),
        };
        written.map(|()| Requeue::OnEvent).map_err(ActError)
    }
}
