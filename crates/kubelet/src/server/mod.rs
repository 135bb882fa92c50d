//! The kubelet API: HTTPS on port 10250, for API servers, `kubectl` through them, and metrics
//! collectors.
//!
//! A [`connection`](coracle_serving::connection) receives requests; each is authenticated and
//! authorized ([`access`]), routed by its path ([`route`]), and answered from the [`PodManager`] and the runtime: pods, [`logs`],
//! [`stats`], [`system_logs`], or, after an upgrade to SPDY or WebSocket, exec and attach ([`command`]) and port
//! forwarding ([`port_forward`]). Status codes and texts are upstream's. [`healthz`] is served
//! separately on plain HTTP.

pub mod access;
mod command;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
pub(crate) mod healthz;
pub mod logs;
mod metrics;
mod pods;
mod port_forward;
mod query;
mod remote_runtime;
mod resource_metrics;
mod route;
mod run;
mod stats;
mod system_logs;

use std::sync::Arc;

use coracle_client::{Tasks, World};
use coracle_cri::Runtime;
use coracle_metrics::Registry;
use coracle_serving::access::{Authorities, Certified, Reviews};
use coracle_serving::pages::Pages;
use coracle_serving::{About, Checks, answer, connection};
use http::Request;
use hyper::body::Incoming;
use tokio::net::TcpListener;
use tokio::sync::watch;

pub use coracle_serving::connection::Tls;
pub use coracle_serving::{TlsError, certificate};

use self::access::Access;
use self::metrics::RequestMetrics;
use crate::host::Host;
use crate::pod_manager::PodManager;

/// The kubelet API server.
pub struct Server {
    pub node_name: String,
    pub runtime: Arc<dyn Runtime>,
    pub pod_manager: PodManager,
    pub access: Access,
    pub world: World,
    /// How its port speaks TLS.
    pub tls: Tls,
    metrics: Registry,
    probe_metrics: Registry,
    pages: Pages,
    requests: RequestMetrics,
    /// Streams that outlive their request: exec, attach, port forwarding.
    tasks: Tasks,
}

impl Server {
    pub fn new(host: &Host, pod_manager: PodManager, access: Access) -> Server {
        Server::over(
            &host.node_name,
            Arc::clone(&host.runtime),
            pod_manager,
            access,
            host.world,
            host.probe_metrics.clone(),
            About {
                name: "kubelet",
                version: host.version,
                metrics: host.metrics.clone(),
                health: vec![Checks::new("healthz", Vec::new())],
                settings: host.settings.clone(),
            },
        )
    }

    /// A server without the rest of the kubelet.
    pub fn over(
        node_name: &str,
        runtime: Arc<dyn Runtime>,
        pod_manager: PodManager,
        access: Access,
        world: World,
        probe_metrics: Registry,
        about: About,
    ) -> Server {
        let metrics = about.metrics.clone();
        let node_name = node_name.to_owned();
        metrics::register(&metrics, &node_name, &pod_manager);
        Server {
            requests: RequestMetrics::new(&metrics),
            pages: Pages::new(about, world),
            metrics,
            probe_metrics,
            node_name,
            runtime,
            pod_manager,
            access,
            world,
            tls: Tls::default(),
            tasks: Tasks::new(),
        }
    }

    /// Serves until `stop` is set; open streams end then.
    pub async fn serve(
        self: Arc<Self>,
        listener: TcpListener,
        certificate: Arc<dyn rustls::server::ResolvesServerCert>,
        stop: watch::Receiver<bool>,
    ) -> Result<(), TlsError> {
        let acceptor = connection::acceptor(certificate, &self.tls)?;
        connection::serve(&self, listener, acceptor, stop).await;
        self.tasks.stop().await;
        Ok(())
    }
}

impl connection::Server for Server {
    fn reviews(&self) -> &Reviews {
        &self.access.reviews
    }

    fn authorities(&self) -> Option<Arc<Authorities>> {
        self.access.authorities.clone()
    }

    fn world(&self) -> World {
        self.world
    }

    fn http2_streams(&self) -> Option<u32> {
        self.tls.http2_streams
    }

    async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        certified: Arc<Certified>,
    ) -> answer::Answer {
        route::answer(self, request, certified).await
    }
}
