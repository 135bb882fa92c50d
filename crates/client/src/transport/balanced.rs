//! HTTPS to one of several servers of a cluster, with failover.
//!
//! One server is used until it cannot be reached; then the next one. Which is the first depends on
//! a number that the client chooses, so that many clients spread over the servers. Open connections
//! to a server that is still there are kept.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use coracle_base::net::authority;
use coracle_base::sync::Mutex;
use http::{Request, Response};

use super::https::Dialing;
use super::{Body, Https, Transport, TransportError};
use crate::config::{Config, ConfigError};
use crate::world::World;

/// The timeout of opening a connection, where another server may answer.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// The servers of a cluster, by host and port. Clones share them.
#[derive(Clone, Debug)]
pub struct Servers(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    servers: Vec<(String, u16)>,
    /// The one in use.
    at: usize,
    /// Which of them is preferred, modulo their number.
    preferred: usize,
}

impl Servers {
    /// `preferred` selects the first one that is used.
    pub fn new(servers: Vec<(String, u16)>, preferred: usize) -> Servers {
        let at = preferred % servers.len().max(1);
        Servers(Arc::new(Mutex::new(State {
            servers,
            at,
            preferred,
        })))
    }

    /// All of them.
    pub fn all(&self) -> Vec<(String, u16)> {
        self.0.lock().servers.clone()
    }

    /// Replaces the servers; an empty list is ignored. Returns whether anything changed.
    pub fn replace(&self, servers: Vec<(String, u16)>) -> bool {
        let mut state = self.0.lock();
        if servers.is_empty() || servers == state.servers {
            return false;
        }
        state.at = state.preferred % servers.len();
        state.servers = servers;
        true
    }

    fn current(&self) -> Result<(String, u16), String> {
        let state = self.0.lock();
        let server = state.servers.get(state.at).cloned();
        server.ok_or_else(|| "no server of the cluster is known".to_owned())
    }

    /// A server could not be reached: the next one is used, unless that has happened already.
    fn failed(&self, server: &str) {
        let mut state = self.0.lock();
        let Some((host, port)) = state.servers.get(state.at) else {
            return;
        };
        if authority(host, *port) == server {
            state.at = (state.at + 1) % state.servers.len();
        }
    }

    fn count(&self) -> usize {
        self.0.lock().servers.len()
    }
}

/// The transport to the servers of a cluster.
pub struct Balanced {
    https: Https,
    servers: Servers,
}

impl Balanced {
    /// `config` has the credentials, the CA, and the name that is in the certificates of all servers.
    pub async fn new(
        config: Config,
        servers: Servers,
        world: World,
    ) -> Result<Balanced, ConfigError> {
        let known = servers.clone();
        let dialing = Dialing {
            resolve: Some(Arc::new(move || known.current())),
            connect_within: Some(CONNECT_WITHIN),
            ..Dialing::default()
        };
        Ok(Balanced {
            https: Https::dialing(config, world, dialing).await?,
            servers,
        })
    }
}

#[async_trait]
impl Transport for Balanced {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Body>, TransportError> {
        let mut left = self.servers.count();
        loop {
            let sent = self.https.send(request.clone()).await;
            let Err(TransportError::Connect { server, .. }) = &sent else {
                return sent;
            };
            self.servers.failed(server);
            left = left.saturating_sub(1);
            if left == 0 {
                return sent;
            }
            tracing::debug!(server, "server cannot be reached; trying another");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(names: &[&str], preferred: usize) -> Servers {
        let servers = names.iter().map(|name| ((*name).to_owned(), 6443));
        Servers::new(servers.collect(), preferred)
    }

    fn current(servers: &Servers) -> String {
        servers.current().unwrap().0
    }

    #[test]
    fn the_next_server_is_used_when_one_fails() {
        let servers = servers(&["a", "b", "c"], 4);
        assert_eq!(current(&servers), "b");
        servers.failed("b:6443");
        assert_eq!(current(&servers), "c");
        // Another request of the same time failed at the same server.
        servers.failed("b:6443");
        assert_eq!(current(&servers), "c");
        servers.failed("c:6443");
        assert_eq!(current(&servers), "a");
    }

    #[test]
    fn servers_come_and_go() {
        let known = servers(&["a"], 1);
        assert_eq!(current(&known), "a");
        assert!(known.replace(servers(&["a", "b"], 0).all()));
        assert_eq!(current(&known), "b");
        assert!(!known.replace(known.all()));
        assert!(!known.replace(Vec::new()));
        assert_eq!(current(&known), "b");
    }
}
