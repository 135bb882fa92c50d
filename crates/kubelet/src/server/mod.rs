//! The HTTPS API of a node, on port 10250: what API servers, `kubectl` through them, and collectors
//! of metrics ask of it.
//!
//! A connection ([`connection`]) brings requests; each is let in by [`access`], sent where its path
//! says ([`route`]), and answered from the [`Roster`] and the runtime: pods, logs ([`logs`]),
//! statistics ([`stats`]), or, where the client leaves HTTP for SPDY or WebSocket, commands
//! ([`command`]) and ports ([`ports`]). Answers to people are text, as upstream's; statuses and
//! texts are upstream's too. Beside it, [`healthz`] answers those on the machine itself.

pub mod access;
mod answer;
mod command;
mod connection;
mod foreign;
pub(crate) mod healthz;
pub mod logs;
mod metrics;
mod pods;
mod ports;
mod query;
mod route;
mod run;
mod stats;

use std::sync::Arc;

use coracle_client::{Tasks, World};
use coracle_cri::Runtime;
use tokio::net::TcpListener;
use tokio::sync::watch;

pub use connection::{TlsError, certificate};

use self::access::Access;
use crate::host::Host;
use crate::roster::Roster;

/// What requests are answered from.
pub struct Server {
    pub node_name: String,
    pub runtime: Arc<dyn Runtime>,
    pub roster: Roster,
    pub access: Access,
    pub world: World,
    /// What lasts longer than its request: commands and ports.
    tasks: Tasks,
}

impl Server {
    pub fn new(host: &Host, roster: Roster, access: Access) -> Server {
        Server::over(
            &host.node_name,
            Arc::clone(&host.runtime),
            roster,
            access,
            host.world,
        )
    }

    /// Without the rest of a kubelet.
    pub fn over(
        node_name: &str,
        runtime: Arc<dyn Runtime>,
        roster: Roster,
        access: Access,
        world: World,
    ) -> Server {
        let node_name = node_name.to_owned();
        Server {
            node_name,
            runtime,
            roster,
            access,
            world,
            tasks: Tasks::new(),
        }
    }

    /// Serves until `stop` says so; commands and ports that are open end then.
    pub async fn serve(
        self: Arc<Self>,
        listener: TcpListener,
        certificate: Arc<dyn rustls::server::ResolvesServerCert>,
        stop: watch::Receiver<bool>,
    ) -> Result<(), TlsError> {
        let acceptor = connection::acceptor(certificate)?;
        connection::serve(&self, listener, acceptor, stop).await;
        self.tasks.stop().await;
        Ok(())
    }
}
