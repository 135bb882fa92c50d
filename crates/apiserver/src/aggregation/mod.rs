//! Aggregated API servers: groups and versions that another server serves, behind a Service of the
//! cluster.
//!
//! An APIService with `spec.service` is a [`remote::Remote`]. [`controller`] follows APIServices,
//! Services and EndpointSlices: it keeps the [`routes`], checks which servers are available
//! ([`availability`]) and writes that into their status, and fetches what they serve
//! ([`discovery`], [`openapi`]). A request below `/apis/GROUP/VERSION` of a remote one is forwarded
//! ([`proxy`]) after it has been authenticated and authorized here; the other server learns from
//! headers ([`identity`]) who sent it, and believes them because this server shows the client
//! certificate of the front proxy.
//!
//! What a server says about itself counts for its own group and version only.

mod availability;
pub(crate) mod controller;
pub(crate) mod discovery;
mod identity;
pub(crate) mod limited;
pub(crate) mod openapi;
mod proxy;
mod remote;
mod routes;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use coracle_base::sync::Mutex;
use coracle_client::{Tasks, World};
use coracle_metrics::{Alpha, Counters, Gauges, Registry, metrics};

use crate::cache::Caches;
use crate::webhook::Route;
use discovery::Described;
pub(crate) use remote::Remote;
use remote::{Backend, BackendKey};
use routes::Routes;

/// The aggregated servers of this server.
pub struct Aggregation {
    caches: Arc<Caches>,
    config: AggregationConfig,
    world: World,
    routes: ArcSwap<Routes>,
    /// What remote servers say of themselves, by the name of the APIService.
    described: ArcSwap<HashMap<String, Arc<Described>>>,
    /// The servers of the routes, with their connections.
    backends: Mutex<HashMap<BackendKey, Arc<Backend>>>,
    metrics: AvailabilityMetrics,
    /// Connections that last longer than their requests; they end with the server.
    tasks: Tasks,
}

/// How aggregated servers are reached.
#[derive(Clone, Debug, Default)]
pub struct AggregationConfig {
    /// The client certificate of this server as a front proxy, and its key.
    pub client_certificate: Option<(PathBuf, PathBuf)>,
    /// The way to the pods of a Service.
    pub route: Route,
}

metrics! {
    /// Of the servers that are not available.
    struct AvailabilityMetrics {
        unavailable: Gauges<String> = gauges(
            Alpha,
            "aggregator_unavailable_apiservice",
            "1 for an APIService whose server is not available, by its name.",
            ["name"],
        ),
        became_unavailable: Counters<(String, &'static str)> = counters(
            Alpha,
            "aggregator_unavailable_apiservice_total",
            "How often the server of an APIService became unavailable, by its name and the reason.",
            ["name", "reason"],
        ),
    }
}

impl Aggregation {
    pub fn new(
        caches: Arc<Caches>,
        config: AggregationConfig,
        registry: &Registry,
        world: World,
    ) -> Aggregation {
        Aggregation {
            metrics: AvailabilityMetrics::new(registry),
            caches,
            config,
            world,
            routes: ArcSwap::default(),
            described: ArcSwap::default(),
            backends: Mutex::default(),
            tasks: Tasks::new(),
        }
    }

    /// The remote server that answers at a path, as it is without escapes: as part of its group and
    /// version, or because it describes them. `None`: this server answers.
    pub(crate) fn server_at(&self, path: &str) -> Option<Arc<Remote>> {
        if self.routes.load().is_empty() {
            return None;
        }
        match path.strip_prefix("/openapi/v3/") {
            Some(described) => self.describes(described),
            None => self.routes.load().of_path(path).cloned(),
        }
    }

    /// All of them.
    pub(crate) fn remotes(&self) -> Vec<Arc<Remote>> {
        self.routes.load().all().to_vec()
    }

    /// What an available server says of its group and version.
    pub(crate) fn described(&self, remote: &Remote) -> Option<Arc<Described>> {
        let described = self.described.load();
        described
            .get(&remote.name)
            .filter(|_| remote.is_available)
            .cloned()
    }

    fn describe(&self, name: &str, described: Option<&Arc<Described>>) {
        self.described.rcu(|before| {
            let mut after = HashMap::clone(before);
            match described {
                Some(described) => after.insert(name.to_owned(), Arc::clone(described)),
                None => after.remove(name),
            };
            after
        });
    }

    /// The connections to a server, which APIServices of the same server share.
    async fn backend(&self, key: BackendKey) -> Arc<Backend> {
        let known = |key: &BackendKey| {
            let backends = self.backends.lock();
            backends.get(key).cloned()
        };
        if let Some(known) = known(&key) {
            return known;
        }

        let made = Arc::new(Backend::new(self, key.clone()).await);
        let mut backends = self.backends.lock();
        backends.insert(key, made.clone());
        made
    }

    /// Drops the connections to servers that no route leads to.
    fn forget_backends(&self, routes: &Routes) {
        let mut backends = self.backends.lock();
        backends.retain(|key, _| routes.all().iter().any(|remote| remote.backend.key == *key));
    }
}
