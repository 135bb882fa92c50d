//! The scheduler of a cluster in one process. It uses an in-process client as
//! `system:kube-scheduler`, with the permissions of that user. The embedded store has one server
//! only, so there is no leader election.

use coracle_apiserver::InProcess;
use coracle_apiserver::authn::User;
use coracle_client::{Journal, Tasks};
use coracle_scheduler::config::Config;
use tokio::sync::watch;

use crate::host;
use crate::world::WORLD;

/// A running scheduler; it stops on `stop` or when dropped.
pub(super) struct Scheduler {
    tasks: Tasks,
    stop: watch::Sender<bool>,
}

/// Starts the scheduler. It begins to schedule when the API server is up.
pub(super) fn begin(in_process: &InProcess, journal: Journal) -> Scheduler {
    let user = User {
        name: "system:kube-scheduler".to_string(),
        ..User::default()
    }
    .authenticated();
    let client = in_process.client(user, WORLD).named("kube-scheduler");

    let tasks = Tasks::new();
    let (stop, stopped) = watch::channel(false);
    tasks.spawn(async move {
        let config = Config::default();
        if let Err(error) =
            coracle_scheduler::run(&config, &client, &host::name(), journal, stopped).await
        {
            tracing::error!(%error, "scheduler failed");
        }
    });

    Scheduler { tasks, stop }
}

impl Scheduler {
    /// Stops it at once. Decisions that are not written yet are made again after a restart.
    pub(super) async fn stop(self) {
        self.stop.send_replace(true);
        self.tasks.stop().await;
    }
}
