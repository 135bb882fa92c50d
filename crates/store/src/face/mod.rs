//! The etcd face: etcd's v3 API over the embedded engine, so that `etcdctl` and everything else
//! that speaks to an etcd can speak to it.
//!
//! A [`Face`] listens on a unix socket or a port (`listen`), secures connections (`connections`,
//! `tls`), makes them readable to our HTTP library (`authority`) and hands each call to the service
//! it belongs to: `kv`, `watch`, `lease`, `maintenance`, `cluster`; plain HTTP finds `pages`. A
//! service decodes the request (`crate::wire`), asks the engine, and encodes what it answers;
//! errors leave with etcd's codes and texts. It speaks as a cluster of one member that leads
//! itself.

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

pub use listen::{FaceError, Listen};
pub(crate) use snapshot::Snapshot;
pub use snapshot::SnapshotError;
pub use tls::{Admits, ClientRule, Clients, FaceTls, TlsError};

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

/// Where and how the face is shown.
#[derive(Clone, Debug)]
pub struct FaceConfig {
    pub listen: Listen,
    pub tls: Option<FaceTls>,
    /// The name of the one member.
    pub name: String,
    /// How often a quiet watch that asked for it hears of progress.
    pub progress_every: Duration,
}

/// A face being shown. It goes away when it is stopped or dropped.
pub struct Face {
    url: String,
    stop: signal::Sender<bool>,
    server: JoinSet<Result<(), tonic::transport::Error>>,
}

/// What every service knows.
#[derive(Clone)]
struct Served {
    store: Arc<Embedded>,
    name: String,
    url: String,
    progress_every: Duration,
    stopping: signal::Receiver<bool>,
}

/// Largest request taken off the wire: above every limit of the engine, whose refusal tells more.
const MESSAGE_LIMIT: usize = 64 << 20;
/// There are no elections; etcd's first leader leads in term 2.
const TERM: u64 = 2;
/// etcd's default.
const PROGRESS_EVERY: Duration = Duration::from_secs(10 * 60);
/// How long calls may go on after the face was told to stop.
const GRACE: Duration = Duration::from_secs(5);

impl FaceConfig {
    pub fn new(listen: Listen) -> Self {
        FaceConfig {
            listen,
            tls: None,
            name: "default".to_owned(),
            progress_every: PROGRESS_EVERY,
        }
    }
}

impl Face {
    /// Listens, and serves from now on. Must be called on a runtime.
    pub fn show(store: Arc<Embedded>, config: FaceConfig) -> Result<Self, FaceError> {
        let bound = listen::bind(&config.listen, config.tls.as_ref())?;
        let (stop, stopping) = signal::channel(false);

        let served = Served {
            store,
            name: config.name,
            url: bound.url(config.tls.is_some()),
            progress_every: config.progress_every,
            stopping: stopping.clone(),
        };
        let url = served.url.clone();

        let tls = config.tls.as_ref().map(FaceTls::acceptor).transpose()?;
        let router = served.router();
        let mut server = JoinSet::new();
        server.spawn(bound.serve(tls, router, stopped(stopping)));

        Ok(Face { url, stop, server })
    }

    /// Where clients find it, as `etcdctl --endpoints` takes it.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Takes no new calls, ends the watches, and lets what is under way end for a moment.
    pub async fn stop(self) {
        self.stop_within(GRACE).await;
    }

    /// The same with another patience.
    pub async fn stop_within(mut self, grace: Duration) {
        self.stop.send_replace(true);
        let ended = timeout(grace, self.server.join_next()).await;
        // What is still under way after the grace ends with the tasks, which end with `self`.
        drop::<Result<_, Elapsed>>(ended);
    }
}

impl Served {
    fn router(&self) -> Router {
        let kv = KvServer::new(self.clone())
            .max_decoding_message_size(MESSAGE_LIMIT)
            .max_encoding_message_size(usize::MAX);

        let watch = WatchServer::new(self.clone()).max_encoding_message_size(usize::MAX);
        let calls = Routes::new(kv)
            .add_service(watch)
            .add_service(LeaseServer::new(self.clone()))
            .add_service(MaintenanceServer::new(self.clone()))
            .add_service(ClusterServer::new(self.clone()));

        tonic::transport::Server::builder()
            .accept_http1(true)
            .add_routes(pages::routes(calls, self))
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

    /// Never zero, which etcd takes for "nobody".
    fn member_id(&self) -> u64 {
        self.store.store_id().rotate_left(32).max(1)
    }
}

/// Waits until the face is told to stop, or is gone.
async fn stopped(mut stopping: signal::Receiver<bool>) {
    // An error means that the face is gone, which is as good as told.
    stopping
        .wait_for(|stop| *stop)
        .await
        .map(drop)
        .unwrap_or_default();
}
