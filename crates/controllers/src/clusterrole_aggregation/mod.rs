//! ClusterRole aggregation: a role with an `aggregationRule` gets the rules of all roles that it
//! selects.

pub mod plan;

use async_trait::async_trait;
use coracle_api::time::Timestamp;
use coracle_api::{Map, Value};
use coracle_client::{Access, Error, Informer, ObjectKey, Patch, Resource, Whole, WorkQueue};

use crate::framework::{Context, Controller, Feeds, Observation, Requeue, Runner};
use plan::{Observed, Plan, selectors};

/// The service account.
pub(crate) const ACCOUNT: &str = "clusterrole-aggregation-controller";

/// The field manager of the rules.
const MANAGER: &str = "clusterrole-aggregation-controller";

/// The controller.
pub struct ClusterRoleAggregation {
    roles: Informer<Whole>,
    access: Access,
}

/// The role could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot update cluster role")]
pub struct ActError(#[source] Error);

/// Runs the controller. Never returns.
pub async fn run(context: &Context) {
    let queue = WorkQueue::new("ClusterRoleAggregator");
    let mut feeds = Feeds::new();
    let controller = ClusterRoleAggregation::new(context, &queue, &mut feeds);
    Runner::new(controller, queue, context).run(feeds, 5).await;
}

impl ClusterRoleAggregation {
    /// Creates the controller; its feeds fill `queue`.
    pub fn new(
        context: &Context,
        queue: &WorkQueue<ObjectKey>,
        feeds: &mut Feeds,
    ) -> ClusterRoleAggregation {
        let resource = Resource::builtin("rbac.authorization.k8s.io", "v1", "clusterroles");
        let roles: Informer<Whole> = context.informers.of(&resource);
        let (concerned, known) = (queue.clone(), roles.clone());
        // Any role may be aggregated by any other.
        feeds.follow(&roles, move |_| {
            for role in known.list().iter().filter(|role| selectors(role).is_some()) {
                concerned.add(role.key.clone());
            }
        });
        let access = context.client(ACCOUNT).resource(&resource);
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
        let Some(role) = self.roles.get(key) else {
            return Observation::Absent;
        };
        Observation::Present {
            uid: role.uid.clone(),
            observed: Observed {
                role,
                all: self.roles.list(),
            },
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
        let Plan::Apply(rules) = plan else {
            return Ok(Requeue::OnEvent);
        };
        let mut role = Map::new();
        role.insert("apiVersion", "rbac.authorization.k8s.io/v1");
        role.insert("kind", "ClusterRole");
        role.insert("rules", rules);
        let mut object = Value::Object(role);
        object.meta_mut().set_name(&key.name);

        // Apply creates what does not exist. A role that was deleted must not be recreated, so its
        // UID is sent along. (Upstream does not send it, and sometimes recreates a deleted role.)
        object.meta_mut().set_uid(&observed.role.uid);
        let patch = Patch::Apply {
            object,
            manager: MANAGER.to_string(),
            force: true,
        };

        match self.access.patch(&key.name, &patch).await {
            // It was deleted, and the event is on its way.
            Err(error) if error.is_conflict() || error.is_not_found() => Ok(Requeue::OnEvent),
            done => done.map(|_| Requeue::OnEvent).map_err(ActError),
        }
    }
}

#[cfg(test)]
mod tests {
    use coracle_client::{DeleteOptions, Tasks};
    use coracle_testkit::objects::object;
    use coracle_testkit::{Cluster, eventually};

    use super::*;

    const GATHERS: &str = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: all}, \
                           aggregationRule: {clusterRoleSelectors: [{matchLabels: {gathered: 'yes'}}]}}";
    const GATHERED: &str = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: one, \
                            labels: {gathered: 'yes'}}, rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}";

    #[tokio::test]
    async fn a_deleted_role_is_not_recreated_and_its_successor_gets_no_rules() {
        let cluster = Cluster::start().await;
        let context = Context::new(&cluster.client(), cluster.accounts(), Tasks::new());
        let mut feeds = Feeds::new();
        let controller = ClusterRoleAggregation::new(&context, &WorkQueue::new("test"), &mut feeds);

        let roles = cluster.client().resource(&Resource::builtin(
            "rbac.authorization.k8s.io",
            "v1",
            "clusterroles",
        ));
        roles.create(&object(GATHERED)).await.unwrap();

        let key = ObjectKey::cluster("all");
        let seen = async |made: &Value| {
            eventually("the role is seen", async || {
                let Observation::Present { uid, observed } = controller.observe(&key) else {
                    return None;
                };
                let plan = plan::plan(&observed);
                (uid == made.meta().uid() && plan != Plan::Keep).then_some((observed, plan))
            })
            .await
        };

        let made = roles.create(&object(GATHERS)).await.unwrap();
        let (observed, plan) = seen(&made).await;
        roles
            .delete("all", &DeleteOptions::default())
            .await
            .unwrap();

        assert_eq!(
            controller.act(&key, observed, plan).await.unwrap(),
            Requeue::OnEvent
        );

        assert!(roles.find("all").await.unwrap().is_none());

        let made = roles.create(&object(GATHERS)).await.unwrap();
        let (observed, plan) = seen(&made).await;
        roles
            .delete("all", &DeleteOptions::default())
            .await
            .unwrap();

        let made = roles.create(&object(GATHERS)).await.unwrap();
        controller.act(&key, observed, plan).await.unwrap_err();

        let rules = async || {
            let role = roles.get("all").await.unwrap();
            role.get("rules")
                .and_then(Value::as_array)
                .unwrap_or_default()
                .len()
        };
        assert_eq!(rules().await, 0);

        let (observed, plan) = seen(&made).await;
        controller.act(&key, observed, plan).await.unwrap();
        assert_eq!(rules().await, 1);

        context.tasks.stop().await;
        cluster.stop().await;
    }
}
