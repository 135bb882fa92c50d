//! `coracle kube-scheduler`: the scheduler as a process of its own, over HTTPS, with upstream's
//! flags and its KubeSchedulerConfiguration.

mod options;
mod program;

use coracle_client::election::InvalidDurations;
use coracle_client::{Client, Election, Journal, Recorder, Tasks};
use coracle_scheduler::RunError;
use coracle_settings::Mistakes;

use crate::host;
use crate::process::{self, ProcessError};
use crate::settings::{self, Arguments};
use crate::world::WORLD;
use options::Options;
use program::PROGRAM;

#[derive(Debug, thiserror::Error)]
pub(crate) enum SchedulerError {
    #[error(transparent)]
    Settings(#[from] Mistakes),
    #[error(transparent)]
    Election(#[from] InvalidDurations),
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error("cannot configure the API client")]
    Client(#[from] coracle_client::ConfigError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("leaderelection lost")]
    Lost,
}

#[cfg(test)]
pub(crate) fn declared() -> settings::declared::Declared {
    settings::declared::Declared::of(&PROGRAM)
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), SchedulerError> {
    match settings::read(&PROGRAM, arguments)? {
        Some(options) => process::block_on(schedule(&options))?,
        None => Ok(()),
    }
}

async fn schedule(options: &Options) -> Result<(), SchedulerError> {
    let config = options.complete()?;
    let election = Election {
        release: true,
        ..options.election.election()
    };
    election.check()?;

    let client = Client::connect(options.api.access()?, WORLD)
        .await?
        .named("kube-scheduler");
    let limited = options.api.limit(client.clone());
    process::announce("kube-scheduler is ready\n");

    process::until_signalled(|stop| async move {
        let host = host::name();
        let run = || coracle_scheduler::run(&config, &limited, &host, Journal::new(), stop.clone());
        if !options.election.enabled {
            return Ok(run().await?);
        }

        let tasks = Tasks::new();
        let recorder = Recorder::new(&client, "default-scheduler", &tasks);
        let mut stopped = stop.clone();
        let led = election.lead(&client, &recorder, run);

        tokio::select! {
            biased;
            result = led => Ok(result.map_err(|_| SchedulerError::Lost)??),
            _ = stopped.wait_for(|stop| *stop) => Ok(()),
        }
    })
    .await?
}
