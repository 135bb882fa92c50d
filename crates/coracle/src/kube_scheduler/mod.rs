//! `coracle kube-scheduler`: the scheduler as a process of its own, over HTTPS, with upstream's
//! flags and its KubeSchedulerConfiguration.

mod options;
mod program;

use coracle_client::election::InvalidDurations;
use coracle_client::{Client, Election, Journal, Recorder, Tasks};
use coracle_scheduler::RunError;
use coracle_serving::{Flag, Settings};
use coracle_settings::Mistakes;

use crate::component_port::{self, Port, PortError, SchedulerHealth, component_metrics};
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
    #[error(transparent)]
    WriteConfig(#[from] settings::WriteConfigError),
    #[error("leaderelection lost")]
    Lost,
    #[error(transparent)]
    Port(#[from] PortError),
}

#[cfg(test)]
pub(crate) fn declared() -> settings::declared::Declared {
    settings::declared::Declared::of(&PROGRAM)
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), SchedulerError> {
    match settings::read(&PROGRAM, arguments)? {
        Some(mut options) => {
            if let Some(file) = options.write_config_to.clone() {
                return Ok(settings::write_configuration(
                    &PROGRAM,
                    &mut options,
                    &file,
                )?);
            }
            let shown = shown(&mut options);
            process::block_on(schedule(&options, &shown))?
        }
        None => Ok(()),
    }
}

fn shown(options: &mut Options) -> Settings {
    settings::shown(&PROGRAM, options, "componentconfig")
}

/// What the scheduler shows of its settings where all have their defaults, in a process with these
/// flags.
pub(crate) fn shown_in(flags: &[Flag]) -> Settings {
    Settings {
        flags: Some(flags.to_vec()),
        ..shown(&mut PROGRAM.defaults())
    }
}

async fn schedule(options: &Options, shown: &Settings) -> Result<(), SchedulerError> {
    options.feature_gates.set()?;
    let config = options.complete()?;
    let election = Election {
        release: true,
        ..options.election.election()
    };
    election.check()?;

    let metrics = component_metrics();
    let client = Client::connect(options.api.access()?, WORLD)
        .await?
        .named("kube-scheduler")
        .measured(&metrics);
    let port_options = component_port::options(&options.serving, &options.delegation)?;
    let port = Port::open("kube-scheduler", &port_options).await?;
    let limited = options.api.limit(client.clone());
    process::announce("kube-scheduler is ready\n");

    process::until_signalled(|stop| async move {
        let (host, tasks) = (host::name(), Tasks::new());
        let health = SchedulerHealth::default();
        if let Some(port) = port {
            let leads = options.election.enabled.then_some(&election);
            let about = health.about(&metrics, leads, stop.clone(), shown.clone());
            let reviews = component_port::reviews(&client, &options.delegation).await?;
            let component =
                component_port::component(about, &client, reviews, &port_options, &tasks)?;
            port.serve(component, &tasks);
        }

        let synced = || health.set_synced();
        let run = || {
            let journal = Journal::new();
            coracle_scheduler::run(&config, &limited, &host, journal, stop.clone(), synced)
        };
        if !options.election.enabled {
            return Ok(run().await?);
        }

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
