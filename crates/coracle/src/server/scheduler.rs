//! The scheduler of a cluster in one process. It uses an in-process client as
//! `system:kube-scheduler`, with the permissions of that user. The embedded store has one server
//! only, so there is no leader election.

use coracle_apiserver::InProcess;
use coracle_apiserver::authn::User;
use coracle_client::{Journal, Tasks};
use coracle_scheduler::config::Config;
use tokio::sync::watch;

use super::Server;
use super::options::Component;
use crate::certificates::Pair;
use crate::component_port::{self, SCHEDULER_PORT, SchedulerHealth, component_metrics};
use crate::world::WORLD;
use crate::{host, kube_scheduler};

/// A running scheduler; it stops on `stop` or when dropped.
pub(super) struct Scheduler {
    tasks: Tasks,
    stop: watch::Sender<bool>,
}

/// Starts the scheduler, unless it is disabled. It begins to schedule when the API server is up.
pub(super) async fn begin(
    command: &Server,
    in_process: &InProcess,
    journal: &Journal,
    authority: &Pair,
) -> Option<Scheduler> {
    if command.disable.contains(&Component::Scheduler) {
        return None;
    }

    let user = User {
        name: "system:kube-scheduler".to_string(),
        ..User::default()
    }
    .authenticated();
    let metrics = component_metrics();
    let client = in_process
        .client(user, WORLD)
        .named("kube-scheduler")
        .measured(&metrics);

    let (tasks, journal) = (Tasks::new(), journal.clone());
    let (stop, stopped) = watch::channel(false);
    let health = SchedulerHealth::default();
    let about = health.about(
        &metrics,
        None,
        stopped.clone(),
        kube_scheduler::shown_in(&command.flags),
    );
    component_port::begin_in_cluster(about, SCHEDULER_PORT, &client, authority, &tasks).await;

    tasks.spawn(async move {
        let (config, host) = (Config::default(), host::name());
        let synced = || health.set_synced();
        let run = coracle_scheduler::run(&config, &client, &host, journal, stopped, synced);
        if let Err(error) = run.await {
            tracing::error!(%error, "scheduler failed");
        }
    });

    Some(Scheduler { tasks, stop })
}

impl Scheduler {
    /// Stops it at once. Decisions that are not written yet are made again after a restart.
    pub(super) async fn stop(self) {
        self.stop.send_replace(true);
        self.tasks.stop().await;
    }
}
