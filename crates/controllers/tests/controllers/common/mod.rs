//! Controllers in an in-process cluster, under their upstream identities.

use std::sync::OnceLock;

use coracle_api::Value;
use coracle_client::{Access, Client, ListOptions, Resource, Tasks};
use coracle_controllers::certificates::signing::{self, Authority};
use coracle_controllers::{Context, Manager};
use coracle_testkit::Cluster;
use coracle_testkit::objects::object;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, KeyPair};

/// The CA of the test clusters: certificate and key.
pub(crate) fn authority() -> &'static (String, String) {
    static MADE: OnceLock<(String, String)> = OnceLock::new();
    MADE.get_or_init(|| {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
            .distinguished_name
            .push(DnType::CommonName, "test-ca");
        let key = KeyPair::generate().unwrap();
        (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
    })
}

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
        let (certificate, key) = authority();
        let signer = Authority::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
        let controllers = Manager {
            root_ca: Some(certificate.as_str().into()),
            signing: signing::Config::with(&signer),
            ..manager
        };

        let cluster = Cluster::start().await;
        let manager = cluster.client_as("system:kube-controller-manager", &[]);
        let context = Context::new(&manager, cluster.accounts(), Tasks::new());
        let client = cluster.client();

        // Normally created by another controller: pods are rejected without it.
        let account = object(
            "{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: default}}",
        );
        client
            .resource(&Resource::builtin("", "v1", "serviceaccounts"))
            .create(&account)
            .await
            .unwrap();

        let running = context.clone();
        context
            .tasks
            .spawn(async move { controllers.run(&running).await });

        Controlled {
            client,
            cluster,
            context,
        }
    }

    pub(crate) fn of(&self, group: &str, plural: &str) -> Access {
        self.client
            .resource(&Resource::builtin(group, "v1", plural))
            .namespace("default")
    }

    pub(crate) async fn list(&self, plural: &str) -> Vec<Value> {
        self.of("", plural)
            .list_all(&ListOptions::default())
            .await
            .unwrap()
            .items
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
