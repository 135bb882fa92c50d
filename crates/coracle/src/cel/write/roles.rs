//! The rules of aggregated roles (`admin`, `edit`, `view`), which a controller writes in a cluster.

use std::sync::Arc;

use coracle_api::Value;
use coracle_client::{Cached, Client, Error, ListOptions, Resource, Whole};
use coracle_controllers::clusterrole_aggregation::plan::{Observed, Plan, plan};

/// How often roles that aggregate each other are gone through: `admin` gathers `edit`, which gathers
/// `view`.
const ROUNDS: usize = 5;

/// Gives aggregated roles the rules that they select, as the controller does.
pub(super) async fn aggregate(client: &Client) -> Result<(), Error> {
    let roles = Resource::builtin("rbac.authorization.k8s.io", "v1", "clusterroles");
    let access = client.resource(&roles);
    for _ in 0..ROUNDS {
        let found = access.list_all(&ListOptions::default()).await?.items;
        let all: Result<Vec<Arc<Cached<Whole>>>, _> = found
            .into_iter()
            .map(|role| Cached::of(role).map(Arc::new))
            .collect();
        let all = all.map_err(|error| Error::Answer(error.to_string()))?;

        let mut is_settled = true;
        for role in &all {
            let observed = Observed {
                role: role.clone(),
                all: all.clone(),
            };
            let Plan::Apply(rules) = plan(&observed) else {
                continue;
            };
            let mut changed = Value::clone(&role.object);
            if let Some(members) = changed.as_object_mut() {
                members.insert("rules", rules);
            }
            access.update(&changed).await?;
            is_settled = false;
        }
        if is_settled {
            break;
        }
    }
    Ok(())
}
