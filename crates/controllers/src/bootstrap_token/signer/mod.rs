//! The bootstrap signer: signs the ConfigMap `cluster-info` of `kube-public`, which everyone may
//! read, with every bootstrap token.

mod detached_signature;
pub mod plan;

use async_trait::async_trait;
use coracle_api::Text;
use coracle_api::time::Timestamp;
use coracle_client::{Access, Error, Informer, ObjectKey, Resource, Selection, Whole, WorkQueue};

use super::tokens;
use crate::framework::{Context, Controller, Feeds, Observation, Requeue, Runner};
use plan::{Observed, Plan};

/// The service account.
pub(crate) const ACCOUNT: &str = "bootstrap-signer";

/// The ConfigMap that is signed.
const NAMESPACE: &str = "kube-public";
const NAME: &str = "cluster-info";

/// The controller. Its only key is the ConfigMap.
pub struct BootstrapSigner {
    config_maps: Informer<Whole>,
    tokens: Informer<Whole>,
    access: Access,
}

/// The ConfigMap could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the signatures of cluster-info")]
pub struct ActError(#[source] Error);

/// Runs the controller. Never returns.
pub async fn run(context: &Context) {
    let queue = WorkQueue::new("bootstrap_signer_queue");
    let mut feeds = Feeds::new();
    let config_maps = Resource::builtin("", "v1", "configmaps");
    let access = context.client(ACCOUNT).resource(&config_maps);
    let access = access.namespace(NAMESPACE);

    let ours = Selection::all(&config_maps).namespace(NAMESPACE);
    let ours = ours.fields(&format!("metadata.name={NAME}"));
    let config_maps: Informer<Whole> = context.informers.of(ours);
    let tokens = tokens(context);

    for signed_by in [&config_maps, &tokens] {
        let concerned = queue.clone();
        feeds.follow(signed_by, move |change| {
            if change.object().is_some() {
                concerned.add(ObjectKey::new(NAMESPACE, NAME));
            }
        });
    }

    let controller = BootstrapSigner {
        config_maps,
        tokens,
        access,
    };
    Runner::new(controller, queue, context).run(feeds, 1).await;
}

#[async_trait]
impl Controller for BootstrapSigner {
    type Key = ObjectKey;
    type Observed = Observed;
    type Plan = Plan;
    type Error = ActError;

    const NAME: &'static str = "bootstrap-signer-controller";

    fn observe(&self, key: &ObjectKey) -> Observation<Observed> {
        let Some(config_map) = self.config_maps.get(key) else {
            return Observation::Absent;
        };
        let tokens = self.tokens.list();
        Observation::Present {
            uid: Text::new(&config_map.uid),
            observed: Observed {
                config_map: config_map.object.clone(),
                tokens: tokens.iter().map(|token| token.object.clone()).collect(),
            },
        }
    }

    fn plan(observed: &Observed, now: Timestamp) -> Plan {
        plan::plan(observed, now)
    }

    async fn act(&self, _: &ObjectKey, _: Observed, plan: Plan) -> Result<Requeue, ActError> {
        if let Some(signed) = &plan.update {
            match self.access.update(signed).await {
                // It is gone or has changed: its event brings it back.
                Err(error) if error.is_not_found() || error.is_conflict() => {}
                written => drop(written.map_err(ActError)?),
            }
        }

        Ok(plan.wake_after.map_or(Requeue::OnEvent, Requeue::After))
    }
}
