//! The simulated nodes of a cluster in one process, each with the permissions of a kubelet.

use std::time::Duration;

use coracle_apiserver::InProcess;
use coracle_apiserver::authn::User;
use coracle_client::{Journal, Tasks};
use coracle_simnode::Config;

use super::options::NodeFlags;
use crate::world::WORLD;

/// Renewal interval of a node lease: that of a kubelet, or shorter for a short grace period.
fn renew_every(grace_period: Duration) -> Duration {
    (grace_period / 5)
        .min(Duration::from_secs(10))
        .max(Duration::from_millis(100))
}

/// Starts simulated nodes as tasks of `tasks`.
pub(super) fn begin(flags: &NodeFlags, in_process: &InProcess, journal: &Journal, tasks: &Tasks) {
    let nodes = flags.simulated_nodes.into();
    let renew_every = renew_every(flags.node_monitor_grace_period);
    if nodes == 0 {
        return;
    }

    let version = coracle_apiserver::VERSION.into();
    let config = Config {
        nodes,
        renew_every,
        version,
    };

    // A kubelet may watch its own pods only. All nodes share one watch, as a user that may watch
    // all pods and nodes.
    let reader = User {
        name: "system:kube-scheduler".to_string(),
        ..User::default()
    }
    .authenticated();
    let reader = in_process
        .client(reader, WORLD)
        .named("coracle-simulated-nodes");

    let (in_process, owner, journal) = (in_process.clone(), tasks.clone(), journal.clone());
    tasks.spawn(async move {
        let client_of = move |name: &str| {
            let groups = vec!["system:nodes".to_string()];
            let user = User {
                name: format!("system:node:{name}"),
                groups,
                ..User::default()
            };
            in_process
                .client(user.authenticated(), WORLD)
                .named("kubelet")
        };
        coracle_simnode::run(config, &reader, client_of, journal, &owner).await;
    });
}
