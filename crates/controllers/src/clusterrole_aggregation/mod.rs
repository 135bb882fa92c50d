//! The aggregation of cluster roles: a role with an `aggregationRule` has the rules of all roles that it selects.

pub mod plan;

use async_trait::async_trait;
use coracle_api::time::Timestamp;
use coracle_api::{Map, Value};
use coracle_client::{Access, Error, Informer, ObjectKey, Patch, Resource, Whole, WorkQueue};

use crate::frame::{Context, Controller, Feeds, Observation, Requeue, Shell};
use plan::{Observed, Plan, selectors};

/// Who owns the rules that are written.
const MANAGER: &str = "clusterrole-aggregation-controller";

/// The controller.
pub struct ClusterRoleAggregation {
    roles: Informer<Whole>,
    access: Access,
}

/// The role could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the role")]
pub struct ActError(#[source] Error);

/// Begins the controller. Never returns.
pub async fn run(context: &Context) {
    let queue = WorkQueue::new("ClusterRoleAggregator");
    let mut feeds = Feeds::new(context.tasks.clone());
    let controller = ClusterRoleAggregation::new(context, &queue, &mut feeds);
    Shell::new(controller, queue, context).run(feeds, 5).await;
}

impl ClusterRoleAggregation {
    /// The controller, whose feeds fill `queue`.
    pub fn new(context: &Context, queue: &WorkQueue<ObjectKey>, feeds: &mut Feeds) -> ClusterRoleAggregation {
        let resource = Resource::builtin("rbac.authorization.k8s.io", "v1", "clusterroles");
        let roles: Informer<Whole> = context.informers.of(&resource);
        let (concerned, known) = (queue.clone(), roles.clone());
        // Any role may be gathered by any other.
        feeds.follow(&roles, move |_| {
            for role in known.list().iter().filter(|role| selectors(role).is_some()) {
                concerned.add(role.key.clone());
            }
        });
        let access = context.client(MANAGER).resource(&resource);
        ClusterRoleAggregation { roles, access }
    }
}

#[async_trait]
impl Controller for ClusterRoleAggregation {
    type Key = ObjectKey;
    type Observed = Observed;
    type Plan = Plan;
    type Error = ActError;

    const NAME: &'static str = "clusterrole-aggregation-controller";

    fn observe(&self, key: &ObjectKey) -> Observation<Observed> {
        let Some(role) = self.roles.get(key) else { return Observation::Gone };
        Observation::Seen { uid: role.uid.clone(), observed: Observed { role, all: self.roles.list() } }
    }

    fn plan(observed: &Observed, _: Timestamp) -> Plan {
        plan::plan(observed)
    }

    async fn act(&self, key: &ObjectKey, _: Observed, plan: Plan) -> Result<Requeue, ActError> {
        let Plan::Apply(rules) = plan else { return Ok(Requeue::OnEvent) };
        let mut role = Map::new();
        role.insert("apiVersion", "rbac.authorization.k8s.io/v1");
        role.insert("kind", "ClusterRole");
        role.insert("rules", rules);
        let mut object = Value::Object(role);
        object.meta_mut().set_name(&key.name);
        let patch = Patch::Apply { object, manager: MANAGER.to_string(), force: true };
        self.access.patch(&key.name, &patch).await.map_err(ActError)?;
        Ok(Requeue::OnEvent)
    }
}
