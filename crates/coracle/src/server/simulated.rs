//! The simulated nodes of a cluster in one process, each with the rights of a kubelet.

use std::time::Duration;

use coracle_apiserver::InProcess;
use coracle_apiserver::authn::User;
use coracle_client::{Journal, Tasks};
use coracle_simnode::Config;

use crate::world::WORLD;

/// How often a node renews its lease: as often as a kubelet, or more often where silence is borne
/// for a shorter time.
pub(super) fn renew_every(patience: Duration) -> Duration {
    (patience / 5)
        .min(Duration::from_secs(10))
        .max(Duration::from_millis(100))
}

/// Begins so many nodes, as tasks of `tasks`; none where the count is zero.
pub(super) fn begin(
    door: &InProcess,
    nodes: usize,
    renew_every: Duration,
    journal: Journal,
    tasks: &Tasks,
) {
    if nodes == 0 {
        return;
    }

    let version = coracle_apiserver::VERSION.into();
    let config = Config {
        nodes,
        renew_every,
        version,
    };

    // A kubelet may watch its own pods only. All nodes share one watch, so somebody looks who may
    // see all pods and nodes.
    let reader = User {
        name: "system:kube-scheduler".to_string(),
        ..User::default()
    }
    .authenticated();
    let reader = door.client(reader, WORLD).named("coracle-simulated-nodes");

    let (door, owner) = (door.clone(), tasks.clone());
    tasks.spawn(async move {
        let client_of = move |name: &str| {
            let groups = vec!["system:nodes".to_string()];
            let user = User {
                name: format!("system:node:{name}"),
                groups,
                ..User::default()
            };
            door.client(user.authenticated(), WORLD).named("kubelet")
        };
        coracle_simnode::run(config, &reader, client_of, journal, &owner).await;
    });
}
