//! PersistentVolume protection: a bound volume is not deleted.

pub mod plan;

use std::sync::Arc;

use async_trait::async_trait;
use coracle_api::Value;
use coracle_api::time::Timestamp;
use coracle_client::{Access, Cached, Error, Informer, ObjectKey, Resource, Whole, WorkQueue};

use crate::framework::{Context, Controller, Feeds, Observation, Requeue, Runner};
use plan::{FINALIZER, Plan};

/// The service account.
pub(crate) const ACCOUNT: &str = "pv-protection-controller";

/// The controller.
pub struct PvProtection {
    volumes: Informer<Whole>,
    access: Access,
}

/// The volume could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot update persistent volume")]
pub struct ActError(#[source] Error);

/// Runs the controller. Never returns.
pub async fn run(context: &Context) {
    let queue = WorkQueue::new("pvprotection");
    let mut feeds = Feeds::new();
    let resource = Resource::builtin("", "v1", "persistentvolumes");
    let volumes: Informer<Whole> = context.informers.of(&resource);

    let concerned = queue.clone();
    feeds.follow(&volumes, move |change| {
        if let Some(volume) = change.object() {
            concerned.add(volume.key.clone());
        }
    });

    let access = context.client(ACCOUNT).resource(&resource);
    Runner::new(PvProtection { volumes, access }, queue, context)
        .run(feeds, 1)
        .await;
}

#[async_trait]
impl Controller for PvProtection {
    type Key = ObjectKey;
    type Observed = Arc<Cached<Whole>>;
    type Plan = Plan;
    type Error = ActError;

    const NAME: &'static str = "persistentvolume-protection-controller";

    fn observe(&self, key: &ObjectKey) -> Observation<Arc<Cached<Whole>>> {
        let Some(volume) = self.volumes.get(key) else {
            return Observation::Absent;
        };
        Observation::Present {
            uid: volume.uid.clone(),
            observed: volume,
        }
    }

    fn plan(volume: &Arc<Cached<Whole>>, _: Timestamp) -> Plan {
        plan::plan(volume)
    }

    async fn act(
        &self,
        _: &ObjectKey,
        volume: Arc<Cached<Whole>>,
        plan: Plan,
    ) -> Result<Requeue, ActError> {
        let mut volume = Value::clone(&volume.object);
        match plan {
            Plan::Keep => return Ok(Requeue::OnEvent),
            Plan::Protect => drop(volume.meta_mut().add_finalizer(FINALIZER)),
            Plan::Release => drop(volume.meta_mut().remove_finalizer(FINALIZER)),
        }
        match self.access.update(&volume).await {
            Err(error) if error.is_not_found() => Ok(Requeue::OnEvent),
            done => done.map(|_| Requeue::OnEvent).map_err(ActError),
        }
    }
}
