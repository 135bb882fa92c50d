//! The etcd server: etcd's v3 API over the embedded engine, for `etcdctl` and other etcd clients.
//!
//! An [`EtcdServer`] listens on a unix socket or a port (`listen`), accepts and secures connections
//! (`connections`, `tls`), fixes their headers for our HTTP library (`authority`) and routes each
//! call to its service: `kv`, `watch`, `lease`, `maintenance`, `cluster`; plain HTTP goes to
//! `pages`. A service decodes the request (`crate::wire`), calls the engine and encodes the answer;
//! errors carry etcd's codes and texts. The server presents itself as a cluster of one member,
//! which is the leader.

mod authority;
mod cluster;
mod connections;
mod kv;
mod lease;
mod listen;
mod maintenance;
mod pages;
mod pump;
mod snapshot;
mod stream;
mod tls;
mod watch;

pub use listen::{EtcdServerError, Listen};
pub(crate) use snapshot::Snapshot;
pub use snapshot::SnapshotError;
pub use tls::{Admits, ClientRule, Clients, ServerTls, TlsError};

use crate::Revision;
use crate::embedded::Embedded;
use crate::wire::rpc;
use rpc::{
    cluster_server::ClusterServer, kv_server::KvServer, lease_server::LeaseServer,
    maintenance_server::MaintenanceServer, watch_server::WatchServer,
};
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::watch as signal,
    task::JoinSet,
    time::{error::Elapsed, timeout},
};
use tonic::{service::Routes, transport::server::Router};

/// Where the etcd server listens, and how.
#[derive(Clone, Debug)]
pub struct EtcdServerConfig {
    pub listen: Listen,
    pub tls: Option<ServerTls>,
    /// The name of the one member.
    pub name: String,
    /// How often an idle watch that requested progress notifications gets one.
    pub progress_every: Duration,
    /// The URLs of the member for clients and for other members, as the member list shows them.
    /// Without client URLs it shows the address that is listened on.
    pub client_urls: Vec<String>,
    pub peer_urls: Vec<String>,
    /// Serves the pages for health, metrics and version, and not the API.
    pub pages_only: bool,
    /// A port beyond loopback may be served to clients without certificates.
    pub is_open: bool,
}

/// A running etcd server. It ends when it is stopped or dropped.
pub struct EtcdServer {
    url: String,
    stop: signal::Sender<bool>,
    server: JoinSet<Result<(), tonic::transport::Error>>,
}

/// The state that all services share.
#[derive(Clone)]
struct ServerState {
    store: Arc<Embedded>,
    name: String,
    client_urls: Vec<String>,
    peer_urls: Vec<String>,
    progress_every: Duration,
    stopping: signal::Receiver<bool>,
}

/// Largest message accepted: above every limit of the engine, whose error is more specific.
const MESSAGE_LIMIT: usize = 64 << 20;
/// There are no elections; etcd's first leader has term 2.
const TERM: u64 = 2;
/// etcd's default.
const PROGRESS_EVERY: Duration = Duration::from_secs(10 * 60);
/// How long calls may continue after the server was stopped.
const GRACE: Duration = Duration::from_secs(5);

impl EtcdServerConfig {
    pub fn new(listen: Listen) -> Self {
        EtcdServerConfig {
            listen,
            tls: None,
            name: "default".to_owned(),
            progress_every: PROGRESS_EVERY,
            client_urls: Vec::new(),
            peer_urls: Vec::new(),
            pages_only: false,
            is_open: false,
        }
    }
}

impl EtcdServer {
    /// Binds the listener and starts to serve. Must be called on a runtime.
    pub fn start(store: Arc<Embedded>, config: EtcdServerConfig) -> Result<Self, EtcdServerError> {
        let tls = config.tls.as_ref().map(ServerTls::acceptor).transpose()?;
        let bound = listen::bind(&config)?;
        let url = bound.url(config.tls.is_some());
        let (stop, stopping) = signal::channel(false);

        let client_urls = match config.client_urls.is_empty() {
            true => vec![url.clone()],
            false => config.client_urls,
        };
        let state = ServerState {
            store,
            name: config.name,
            client_urls,
            peer_urls: config.peer_urls,
            progress_every: config.progress_every,
            stopping: stopping.clone(),
        };

        let router = state.router(config.pages_only);
        let mut server = JoinSet::new();
        server.spawn(bound.serve(tls, router, stopped(stopping)));

        Ok(EtcdServer { url, stop, server })
    }

    /// The client URL, in the form of `etcdctl --endpoints`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Accepts no new calls, ends the watches, and waits a short time for calls in progress.
    pub async fn stop(self) {
        self.stop_within(GRACE).await;
    }

    /// Like [`EtcdServer::stop`], with a given grace period.
    pub async fn stop_within(mut self, grace: Duration) {
        self.stop.send_replace(true);
        let ended = timeout(grace, self.server.join_next()).await;
        // Calls in progress after the grace period end with their tasks, which `self` owns.
        drop::<Result<_, Elapsed>>(ended);
    }
}

impl ServerState {
    fn router(&self, pages_only: bool) -> Router {
        let mut server = tonic::transport::Server::builder().accept_http1(true);
        if pages_only {
            return server.add_routes(pages::alone(self));
        }

        let kv = KvServer::new(self.clone())
            .max_decoding_message_size(MESSAGE_LIMIT)
            .max_encoding_message_size(usize::MAX);

        let watch = WatchServer::new(self.clone()).max_encoding_message_size(usize::MAX);
        let calls = Routes::new(kv)
            .add_service(watch)
            .add_service(LeaseServer::new(self.clone()))
            .add_service(MaintenanceServer::new(self.clone()))
            .add_service(ClusterServer::new(self.clone()));

        server.add_routes(pages::routes(calls, self))
    }

    fn header(&self, revision: Revision) -> rpc::ResponseHeader {
        rpc::ResponseHeader {
            cluster_id: self.store.store_id(),
            member_id: self.member_id(),
            revision: revision.to_wire(),
            raft_term: TERM,
        }
    }

    fn header_now(&self) -> rpc::ResponseHeader {
        self.header(self.store.revision())
    }

    /// Never zero, which etcd reads as "no member".
    fn member_id(&self) -> u64 {
        self.store.store_id().rotate_left(32).max(1)
    }
}

/// Waits until the server is stopped or dropped.
async fn stopped(mut stopping: signal::Receiver<bool>) {
    // An error means that the server was dropped.
    stopping
        .wait_for(|stop| *stop)
        .await
        .map(drop)
        .unwrap_or_default();
}
