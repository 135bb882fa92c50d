//! The service account controller: every namespace has the default account.

pub mod plan;

use async_trait::async_trait;
use coracle_api::time::Timestamp;
use coracle_api::{Map, Value};
use coracle_client::{Access, Change, Error, Informer, Metadata, ObjectKey, Resource, WorkQueue};

use crate::framework::{Context, Controller, Feeds, Observation, Requeue, Runner};
use plan::{DEFAULT, Observed, Plan};

/// The service account.
pub(crate) const ACCOUNT: &str = "service-account-controller";

/// The controller. Its keys are namespaces.
pub struct ServiceAccounts {
    namespaces: Informer<Metadata>,
    accounts: Informer<Metadata>,
    access: Access,
}

/// The account could not be created.
#[derive(Debug, thiserror::Error)]
#[error("cannot create service account")]
pub struct ActError(#[source] Error);

/// Runs the controller. Never returns.
pub async fn run(context: &Context) {
    let queue = WorkQueue::new("serviceaccount");
    let mut feeds = Feeds::new();
    let controller = ServiceAccounts::new(context, &queue, &mut feeds);
    Runner::new(controller, queue, context).run(feeds, 1).await;
}

impl ServiceAccounts {
    /// Creates the controller; its feeds fill `queue`.
    pub fn new(
        context: &Context,
        queue: &WorkQueue<ObjectKey>,
        feeds: &mut Feeds,
    ) -> ServiceAccounts {
        let of = |plural| Resource::builtin("", "v1", plural);
        let namespaces: Informer<Metadata> = context.informers.of(&of("namespaces"));
        let accounts: Informer<Metadata> = context.informers.of(&of("serviceaccounts"));

        let concerned = queue.clone();
        feeds.follow(&namespaces, move |change| {
            if let Some(namespace) = change.object() {
                concerned.add(namespace.key.clone());
            }
        });

        let concerned = queue.clone();
        feeds.follow(&accounts, move |change| {
            if let Change::Deleted { object, .. } = change {
                concerned.add(ObjectKey::cluster(&object.key.namespace));
            }
        });

        let access = context.client(ACCOUNT).resource(&of("serviceaccounts"));

        ServiceAccounts {
            namespaces,
            accounts,
            access,
        }
    }
}

#[async_trait]
impl Controller for ServiceAccounts {
    type Key = ObjectKey;
    type Observed = Observed;
    type Plan = Plan;
    type Error = ActError;

    const NAME: &'static str = "serviceaccount-controller";

    fn observe(&self, key: &ObjectKey) -> Observation<Observed> {
        let Some(namespace) = self.namespaces.get(key) else {
            return Observation::Absent;
        };
        let has_default = self
            .accounts
            .get(&ObjectKey::new(&key.name, DEFAULT))
            .is_some();

        let observed = Observed {
            is_going: namespace.meta().is_being_deleted(),
            has_default,
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
        if plan == Plan::Keep {
            return Ok(Requeue::OnEvent);
        }

        let mut account = Map::new();
        account.insert("apiVersion", "v1");
        account.insert("kind", "ServiceAccount");
        let mut account = Value::Object(account);
        account.meta_mut().set_name(DEFAULT);

        match self
            .access
            .clone()
            .namespace(&key.name)
            .create(&account)
            .await
        {
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
