//! The root CA publisher: every namespace has a ConfigMap with the CA by which pods verify the API
//! server.

pub mod plan;

use std::sync::Arc;

use async_trait::async_trait;
use coracle_api::time::Timestamp;
use coracle_client::{Access, Error, Informer, ObjectKey, Resource, Selection, Whole, WorkQueue};
use tracing::warn;

use crate::framework::{Context, Controller, Feeds, Observation, Requeue, Runner};
use crate::views::Owned;
use plan::{NAME, Observed, Plan};

/// The service account.
pub(crate) const ACCOUNT: &str = "root-ca-cert-publisher";

/// The controller. Its keys are namespaces.
pub struct RootCaPublisher {
    namespaces: Informer<Owned>,
    config_maps: Informer<Whole>,
    access: Access,
    authority: Arc<str>,
}

/// The ConfigMap could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write root CA config map")]
pub struct ActError(#[source] Error);

/// Runs the controller; without an authority it does nothing. Never returns.
pub async fn run(context: &Context, authority: Option<Arc<str>>) {
    let Some(authority) = authority else {
        warn!(
            controller = RootCaPublisher::NAME,
            "controller not started: no root CA configured"
        );
        return std::future::pending().await;
    };
    let queue = WorkQueue::new("root_ca_cert_publisher");
    let mut feeds = Feeds::new();
    let controller = RootCaPublisher::new(context, authority, &queue, &mut feeds);
    Runner::new(controller, queue, context).run(feeds, 1).await;
}

impl RootCaPublisher {
    /// Creates the controller; its feeds fill `queue`.
    pub fn new(
        context: &Context,
        authority: Arc<str>,
        queue: &WorkQueue<ObjectKey>,
        feeds: &mut Feeds,
    ) -> RootCaPublisher {
        let config_maps = Resource::builtin("", "v1", "configmaps");
        let access = context.client(ACCOUNT).resource(&config_maps);

        let ours = Selection::all(&config_maps).fields(&format!("metadata.name={NAME}"));
        let config_maps: Informer<Whole> = context.informers.of(ours);
        let namespaces: Informer<Owned> =
            context
                .informers
                .of(&Resource::builtin("", "v1", "namespaces"));

        let concerned = queue.clone();
        feeds.follow(&namespaces, move |change| {
            if let Some(namespace) = change.object() {
                concerned.add(namespace.key.clone());
            }
        });

        let concerned = queue.clone();
        feeds.follow(&config_maps, move |change| {
            if let Some(config_map) = change.object() {
                concerned.add(ObjectKey::cluster(&config_map.key.namespace));
            }
        });

        RootCaPublisher {
            namespaces,
            config_maps,
            access,
            authority,
        }
    }
}

#[async_trait]
impl Controller for RootCaPublisher {
    type Key = ObjectKey;
    type Observed = Observed;
    type Plan = Plan;
    type Error = ActError;

    const NAME: &'static str = "root-ca-certificate-publisher-controller";

    fn observe(&self, key: &ObjectKey) -> Observation<Observed> {
        let Some(namespace) = self.namespaces.get(key) else {
            return Observation::Absent;
        };

        let config_map = self.config_maps.get(&ObjectKey::new(&key.name, NAME));
        let observed = Observed {
            is_going: namespace.is_being_deleted,
            config_map: config_map.map(|found| found.object.clone()),
            authority: self.authority.to_string(),
        };

        Observation::Present {
            uid: namespace.uid.clone(),
            observed,
        }
    }

    fn plan(observed: &Observed, _: Timestamp) -> Plan {
        plan::plan(observed)
    }

    async fn act(&self, key: &ObjectKey, _: Observed, plan: Plan) -> Result<Requeue, ActError> {
        let access = self.access.clone().namespace(&key.name);
        let written = match plan {
            Plan::Keep => return Ok(Requeue::OnEvent),
            Plan::Create(config_map) => access.create(&config_map).await,
            Plan::Update(config_map) => access.update(&config_map).await,
        };

        match written {
            Ok(_) => Ok(Requeue::OnEvent),
            // It was created by another, or the namespace is being deleted.
            Err(error) if error.is_already_exists() || error.has_cause("NamespaceTerminating") => {
                Ok(Requeue::OnEvent)
            }
            Err(error) if error.is_not_found() => Ok(Requeue::OnEvent),
            Err(error) => Err(ActError(error)),
        }
    }
}
