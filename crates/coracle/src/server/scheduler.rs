//! The scheduler of a cluster in one process.
//!
//! It goes through the door for components of the same process, as `system:kube-scheduler` and with
//! no more rights than that has. The store is this process's own, so there is nobody to elect a
//! leader among.

use coracle_apiserver::InProcess;
use coracle_apiserver::authn::User;
use coracle_client::{Journal, Tasks};
use coracle_scheduler::config::Config;
use tokio::sync::watch;

use crate::host;
use crate::world::WORLD;

/// A scheduler that runs; it ends when told so, or when this is dropped.
pub(super) struct Scheduler {
    tasks: Tasks,
    stop: watch::Sender<bool>,
}

/// Begins to schedule as soon as the server behind the door is there.
pub(super) fn begin(door: &InProcess, journal: Journal) -> Scheduler {
    let user = User {
        name: "system:kube-scheduler".to_string(),
        ..User::default()
    }
    .authenticated();
    let client = door.client(user, WORLD).named("kube-scheduler");

    let tasks = Tasks::new();
    let (stop, stopped) = watch::channel(false);
    tasks.spawn(async move {
        let config = Config::default();
        if let Err(error) =
            coracle_scheduler::run(&config, &client, &host::name(), journal, stopped).await
        {
            tracing::error!(%error, "the scheduler does not run");
        }
    });

    Scheduler { tasks, stop }
}

impl Scheduler {
    /// Ends it where it stands: what it has not told the API by now, it finds out again.
    pub(super) async fn stop(self) {
        self.stop.send_replace(true);
        self.tasks.stop().await;
    }
}
