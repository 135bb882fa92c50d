//! Health check NodePorts of Services.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use coracle_api::Text;
use coracle_client::{ObjectKey, ObjectReference, Recorder, Tasks};
use coracle_serving::plain;
use http::StatusCode;
use tokio::net::TcpListener;

use super::{Answer, Health};
use crate::state::HealthCheck;

/// The open ports.
pub(crate) struct Checks {
    node: String,
    health: Health,
    recorder: Recorder,
    open: BTreeMap<ObjectKey, Open>,
}

struct Open {
    port: u16,
    endpoints: Arc<AtomicUsize>,
    /// Dropping it closes the port.
    _tasks: Tasks,
}

/// The name is upstream's.
const WEIGHT: &str = "x-load-balancing-endpoint-weight";

impl Checks {
    pub(crate) fn new(node: &str, health: Health, recorder: Recorder) -> Checks {
        Checks {
            node: node.to_owned(),
            health,
            recorder,
            open: BTreeMap::new(),
        }
    }

    /// Opens and closes ports, and updates their endpoint counts. `at` are the node's addresses to
    /// listen on; empty: all.
    pub(crate) async fn update(&mut self, wanted: BTreeMap<ObjectKey, HealthCheck>, at: &[IpAddr]) {
        self.open
            .retain(|key, open| wanted.get(key).is_some_and(|check| check.port == open.port));

        for (key, check) in wanted {
            if let Some(open) = self.open.get(&key) {
                open.endpoints.store(check.endpoints, Ordering::Relaxed);
                continue;
            }
            match self.listen(&key, &check, at).await {
                Ok(open) => drop(self.open.insert(key, open)),
                Err(error) => self.report_failure(&key, check.port, &error),
            }
        }
    }

    async fn listen(
        &self,
        key: &ObjectKey,
        check: &HealthCheck,
        at: &[IpAddr],
    ) -> std::io::Result<Open> {
        let endpoints = Arc::new(AtomicUsize::new(check.endpoints));
        let tasks = Tasks::new();
        for listener in listeners(check.port, at).await? {
            let (key, health, endpoints) = (key.clone(), self.health.clone(), endpoints.clone());
            tasks.spawn(plain::serve(listener, move |_| {
                answer(&key, endpoints.load(Ordering::Relaxed), health.is_healthy()).into()
            }));
        }

        Ok(Open {
            port: check.port,
            endpoints,
            _tasks: tasks,
        })
    }

    fn report_failure(&self, key: &ObjectKey, port: u16, error: &std::io::Error) {
        let node = &self.node;
        let message =
            format!("node {node} failed to start healthcheck \"{key}\" on port {port}: {error}");

        tracing::warn!(service = %key, port, %error, "cannot listen on the service health check port");
        let about = ObjectReference {
            api_version: Text::new("v1"),
            kind: Text::new("Service"),
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            ..ObjectReference::default()
        };

        self.recorder
            .warning(&about, "FailedToStartServiceHealthcheck", message);
    }
}

async fn listeners(port: u16, at: &[IpAddr]) -> std::io::Result<Vec<TcpListener>> {
    if at.is_empty() {
        // The first covers both families; the second is for kernels without IPv6.
        let everywhere = [
            SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)),
            SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)),
        ];
        return Ok(vec![TcpListener::bind(everywhere.as_slice()).await?]);
    }

    let mut opened = Vec::new();
    for ip in at {
        opened.push(TcpListener::bind(SocketAddr::new(*ip, port)).await?);
    }

    Ok(opened)
}

fn answer(key: &ObjectKey, endpoints: usize, healthy: bool) -> Answer {
    let good = endpoints > 0 && healthy;
    let (namespace, name) = (&key.namespace, &key.name);
    Answer {
        status: if good {
            StatusCode::OK
        } else {
            StatusCode::SERVICE_UNAVAILABLE
        },
        headers: vec![(WEIGHT, endpoints.to_string())],
        body: format!(
            "{{\n\t\"service\": {{\n\t\t\"namespace\": \"{namespace}\",\n\t\t\"name\": \"{name}\"\n\t}},\n\t\
             \"localEndpoints\": {endpoints},\n\t\"serviceProxyHealthy\": {healthy}\n}}"
        ),
    }
}
