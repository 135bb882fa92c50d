//! Controllers in a cluster of the test's process, under the identities that they have upstream.

use coracle_api::Value;
use coracle_client::{Access, Client, ListOptions, Resource, Tasks};
use coracle_controllers::{Context, Manager};
use coracle_testkit::Cluster;
use coracle_testkit::objects::object;

/// What pods know the server by.
pub(crate) const AUTHORITY: &str = "-----BEGIN CERTIFICATE-----";

/// A cluster with controllers; they end when it is dropped.
pub(crate) struct Controlled {
    pub(crate) cluster: Cluster,
    pub(crate) client: Client,
    pub(crate) context: Context,
}

impl Controlled {
    pub(crate) async fn start() -> Controlled {
        Controlled::start_with(Manager::default()).await
    }

    pub(crate) async fn start_with(manager: Manager) -> Controlled {
        let controllers = Manager { root_ca: Some(AUTHORITY.into()), ..manager };
        let cluster = Cluster::start().await;
        let manager = cluster.client_as("system:kube-controller-manager", &[]);
        let context = Context::new(&manager, cluster.accounts(), Tasks::new());
        let client = cluster.client();
        // What another controller will see to: pods are refused without it.
        let account =
            object("{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: default}}");
        client.resource(&Resource::builtin("", "v1", "serviceaccounts")).create(&account).await.unwrap();
        let running = context.clone();
        context.tasks.spawn(async move { controllers.run(&running).await });
        Controlled { client, cluster, context }
    }

    pub(crate) fn of(&self, group: &str, plural: &str) -> Access {
        self.client.resource(&Resource::builtin(group, "v1", plural)).namespace("default")
    }

    pub(crate) async fn list(&self, plural: &str) -> Vec<Value> {
        self.of("", plural).list_all(&ListOptions::default()).await.unwrap().items
    }

    pub(crate) async fn stop(self) {
        self.context.tasks.stop().await;
        self.cluster.stop().await;
    }
}

/// A number below an object.
pub(crate) fn number(object: &Value, path: &[&str]) -> i64 {
    object.at(path).and_then(Value::as_int).unwrap_or_default()
}
