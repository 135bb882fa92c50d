//! A group and version of another server, as its APIService says it, and the way to that server.

use std::sync::Arc;

use coracle_api::catalog::api_version;
use coracle_api::{Map, Text, Value};
use coracle_client::config::{Config, Pem};
use coracle_client::transport::{Dialing, Https};
use coracle_kinds::apiextensions::custom_resource_definition::condition;

use super::Aggregation;
use crate::webhook::resolve;
use crate::webhook_config::{ClientConfig, ServiceRef, Target};

/// The condition in the status of an APIService.
pub(super) const AVAILABLE: &str = "Available";

/// A group that is always served here: APIServices say who serves the others.
const OWN_GROUP: &str = "apiregistration.k8s.io";

/// A group and version that another server serves.
pub(crate) struct Remote {
    /// Of the APIService.
    pub(crate) name: String,
    pub(crate) group: Text,
    pub(crate) version: Text,
    /// Of the group and of its version in discovery.
    pub(crate) priorities: (i64, i64),
    pub(crate) is_available: bool,
    pub(super) backend: Arc<Backend>,
}

impl Remote {
    /// `None`: it is served here.
    pub(super) async fn read(service: &Value, aggregation: &Aggregation) -> Option<Remote> {
        let spec = service.get("spec")?.as_object()?;
        spec.below("service")?;
        let (group, version) = (spec.text("group"), spec.text("version"));
        if group == OWN_GROUP {
            return None;
        }

        Some(Remote {
            name: service.meta().name().to_owned(),
            group: Text::new(group),
            version: Text::new(version),
            priorities: (
                spec.int("groupPriorityMinimum"),
                spec.int("versionPriority"),
            ),
            is_available: condition::is_true(service, AVAILABLE),
            backend: aggregation.backend(BackendKey::of(spec)).await,
        })
    }

    /// `/apis/GROUP/VERSION`
    pub(crate) fn path(&self) -> String {
        match self.group.as_str() {
            "" => format!("/api/{}", self.version),
            group => format!("/apis/{group}/{}", self.version),
        }
    }

    /// `GROUP/VERSION`
    pub(crate) fn api_version(&self) -> Text {
        api_version(&self.group, &self.version)
    }

    pub(super) fn service(&self) -> &ServiceRef {
        self.backend.key.service()
    }
}

/// What decides how a server is reached.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct BackendKey {
    config: ClientConfig,
    insecure: bool,
}

impl BackendKey {
    fn of(spec: &Map) -> BackendKey {
        BackendKey {
            config: ClientConfig::of(spec),
            insecure: spec.flag("insecureSkipTLSVerify"),
        }
    }

    fn service(&self) -> &ServiceRef {
        match &self.config.target {
            Target::Service(service) => service,
            Target::Url(_) => unreachable!("an APIService without a service is not remote"),
        }
    }
}

/// A server, with the open connections to it.
pub(super) struct Backend {
    pub(super) key: BackendKey,
    /// The error is a text for users.
    pub(super) connections: Result<Connections, String>,
}

pub(super) struct Connections {
    /// HTTP/2 where the server has it.
    pub(super) shared: Https,
    /// HTTP/1.1, which can be left for another protocol.
    pub(super) upgrades: Https,
}

impl Backend {
    pub(super) async fn new(aggregation: &Aggregation, key: BackendKey) -> Backend {
        let connections = connect(aggregation, &key).await;
        Backend { key, connections }
    }

    /// Where a new connection would lead now.
    pub(super) fn resolve(&self, aggregation: &Aggregation) -> Result<(String, u16), String> {
        let (route, random) = (aggregation.config.route, aggregation.world.random);
        resolve(&aggregation.caches, route, random, self.key.service())
    }

    /// Later requests open new connections.
    pub(super) fn forget_connections(&self) {
        if let Ok(connections) = &self.connections {
            connections.shared.forget_connections();
            connections.upgrades.forget_connections();
        }
    }
}

async fn connect(aggregation: &Aggregation, key: &BackendKey) -> Result<Connections, String> {
    let service = key.service();
    let mut settings = Config {
        server: format!("https://{}:{}", service.host(), service.port),
        insecure: key.insecure,
        ..Config::default()
    };
    settings.authorities = (!key.config.ca_bundle.trim_ascii().is_empty())
        .then(|| Pem::Content(key.config.ca_bundle.clone()));
    settings.credentials.certificate = aggregation
        .config
        .client_certificate
        .clone()
        .map(|(certificate, key)| (Pem::File(certificate), Pem::File(key)));

    let https = async |http1_only| {
        let (caches, service) = (aggregation.caches.clone(), service.clone());
        let (route, random) = (aggregation.config.route, aggregation.world.random);
        let dialing = Dialing {
            resolve: Some(Arc::new(move || resolve(&caches, route, random, &service))),
            http1_only,
            ..Dialing::default()
        };
        let made = Https::dialing(settings.clone(), aggregation.world, dialing).await;
        made.map_err(|error| error.to_string())
    };

    Ok(Connections {
        shared: https(false).await?,
        upgrades: https(true).await?,
    })
}
