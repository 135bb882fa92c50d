//! VolumeAttributesClass protection: a class that claims or volumes name is not deleted.

pub mod plan;

use async_trait::async_trait;
use coracle_api::time::Timestamp;
use coracle_api::{Text, Value};
use coracle_client::{
    Access, Cached, Change, Error, Informer, ObjectKey, Resource, Whole, WorkQueue,
};

use crate::framework::{Context, Controller, Feeds, Observation, Requeue, Runner};
use plan::{FINALIZER, Observed, Plan, classes_of_claim, classes_of_volume};

/// The service account.
pub(crate) const ACCOUNT: &str = "volumeattributesclass-protection-controller";

/// The index of claims and of volumes by the classes that they name.
const BY_CLASS: &str = "volumeAttributesClassName";

/// The controller.
pub struct VacProtection {
    classes: Informer<Whole>,
    users: [Informer<Whole>; 2],
    access: Access,
}

/// The class could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot update volume attributes class")]
pub struct ActError(#[source] Error);

/// Runs the controller. Never returns.
pub async fn run(context: &Context) {
    let queue = WorkQueue::new("vacprotection");
    let mut feeds = Feeds::new();
    let resource = Resource::builtin("storage.k8s.io", "v1", "volumeattributesclasses");
    let classes: Informer<Whole> = context.informers.of(&resource);

    let concerned = queue.clone();
    feeds.follow(&classes, move |change| {
        if let Some(class) = change.object() {
            concerned.add(class.key.clone());
        }
    });

    let users = [
        (
            "persistentvolumeclaims",
            classes_of_claim as fn(&Value) -> _,
        ),
        ("persistentvolumes", classes_of_volume),
    ]
    .map(|(plural, classes_of)| {
        let users = context.informers.of(&Resource::builtin("", "v1", plural));
        follow(&users, classes_of, &queue, &mut feeds);
        users
    });

    let access = context.client(ACCOUNT).resource(&resource);
    let controller = VacProtection {
        classes,
        users,
        access,
    };
    Runner::new(controller, queue, context).run(feeds, 1).await;
}

/// Queues the classes that an object named and no longer names.
fn follow(
    users: &Informer<Whole>,
    classes_of: fn(&Value) -> Vec<Text>,
    queue: &WorkQueue<ObjectKey>,
    feeds: &mut Feeds,
) {
    users.ensure_index(BY_CLASS, move |user: &Cached<Whole>| classes_of(user));

    let concerned = queue.clone();
    feeds.follow(users, move |change| {
        let (before, now) = match change {
            Change::Updated { old, new } => (classes_of(old), classes_of(new)),
            Change::Deleted { object, .. } => (classes_of(object), Vec::new()),
            Change::Added { .. } | Change::Synced => return,
        };
        for class in before.iter().filter(|class| !now.contains(class)) {
            concerned.add(ObjectKey::new("", class));
        }
    });
}

#[async_trait]
impl Controller for VacProtection {
    type Key = ObjectKey;
    type Observed = Observed;
    type Plan = Plan;
    type Error = ActError;

    const NAME: &'static str = "volumeattributesclass-protection-controller";

    fn observe(&self, key: &ObjectKey) -> Observation<Observed> {
        let Some(class) = self.classes.get(key) else {
            return Observation::Absent;
        };
        let is_used = self.users.iter().any(|users| {
            let naming = users.index_keys(BY_CLASS, &key.name);
            !naming
                .expect("the index is created with the controller")
                .is_empty()
        });
        Observation::Present {
            uid: class.uid.clone(),
            observed: Observed { class, is_used },
        }
    }

    fn plan(observed: &Observed, _: Timestamp) -> Plan {
        plan::plan(observed)
    }

    async fn act(
        &self,
        _: &ObjectKey,
        observed: Observed,
        plan: Plan,
    ) -> Result<Requeue, ActError> {
        let mut class = Value::clone(&observed.class.object);
        match plan {
            Plan::Keep => return Ok(Requeue::OnEvent),
            Plan::Protect => drop(class.meta_mut().add_finalizer(FINALIZER)),
            Plan::Release => drop(class.meta_mut().remove_finalizer(FINALIZER)),
        }
        match self.access.update(&class).await {
            Err(error) if error.is_not_found() => Ok(Requeue::OnEvent),
            done => done.map(|_| Requeue::OnEvent).map_err(ActError),
        }
    }
}
