//! `coracle kube-scheduler`: the scheduler alone, with upstream's flags that apply.

use std::path::PathBuf;
use std::{fs, io};

use clap::{ArgAction, Args};
use coracle_client::{Client, Election, Environment, Journal, Recorder, Tasks};
use coracle_scheduler::RunError;
use coracle_scheduler::config::{Config, ConfigError};

use crate::host;
use crate::process::{self, ProcessError};
use crate::world::WORLD;

/// Runs the scheduler alone: it assigns pods to nodes.
#[derive(Args)]
pub(crate) struct KubeScheduler {
    /// Kubeconfig with the API server and the credentials
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// File with a KubeSchedulerConfiguration
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Elect a leader among several schedulers; only the leader schedules
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    leader_elect: Option<bool>,
    /// Time after which an unschedulable pod is tried again without an event, such as 5m0s
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pod_max_in_unschedulable_pods_duration: Option<std::time::Duration>,
    /// Log level: 4 and above logs details, 6 and above everything
    #[arg(long, short, value_name = "LEVEL", default_value_t = 0, action = ArgAction::Set)]
    v: i64,
}

fn duration(text: &str) -> Result<std::time::Duration, String> {
    let parsed = coracle_api::time::parse_duration(text).map_err(|error| error.to_string())?;
    parsed
        .to_std()
        .ok_or_else(|| String::from("must not be negative"))
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum SchedulerError {
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error("cannot read {}: {error}", file.display())]
    Read { file: PathBuf, error: io::Error },
    #[error("{}", file.display())]
    File { file: PathBuf, source: ConfigError },
    #[error(transparent)]
    Client(#[from] coracle_client::ConfigError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("leaderelection lost")]
    Lost,
}

pub(crate) fn run(command: &KubeScheduler) -> Result<(), SchedulerError> {
    process::log(command.v);
    process::block_on(schedule(command))?
}

async fn schedule(command: &KubeScheduler) -> Result<(), SchedulerError> {
    let config = read(command)?;
    let kubeconfig = command.kubeconfig.clone();
    let kubeconfig = kubeconfig
        .or_else(|| (!config.kubeconfig.is_empty()).then(|| PathBuf::from(&config.kubeconfig)));
    let environment = environment();
    let access = match &kubeconfig {
        Some(file) => coracle_client::Config::load(Some(file), None, &environment)?,
        None => coracle_client::Config::in_cluster(&environment)?,
    };

    let client = Client::connect(access, WORLD)
        .await?
        .named("kube-scheduler");
    process::announce("kube-scheduler is ready\n");

    process::until_signalled(|stop| async move {
        let host = host::name();
        let run = || coracle_scheduler::run(&config, &client, &host, Journal::new(), stop.clone());
        if !config.leader_election.enabled {
            return Ok(run().await?);
        }

        let election = election(&config);
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

fn election(config: &Config) -> Election {
    let wanted = &config.leader_election;
    let identity = format!("{}_{}", host::name(), WORLD.uid());
    Election {
        lease_duration: wanted.lease,
        renew_deadline: wanted.renew,
        retry_period: wanted.retry,
        release: true,
        ..Election::new(&wanted.namespace, &wanted.name, &identity)
    }
}

fn read(command: &KubeScheduler) -> Result<Config, SchedulerError> {
    let mut config = match &command.config {
        None => Config::default(),
        Some(file) => {
            let text = fs::read(file).map_err(|error| SchedulerError::Read {
                file: file.clone(),
                error,
            })?;
            Config::from_file(&text).map_err(|source| SchedulerError::File {
                file: file.clone(),
                source,
            })?
        }
    };

    if let Some(elect) = command.leader_elect {
        config.leader_election.enabled = elect;
    }
    if let Some(parked) = command.pod_max_in_unschedulable_pods_duration {
        config.unschedulable_for = parked;
    }

    Ok(config)
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is where configuration is read from the environment"
)]
fn environment() -> Environment {
    Environment::read(|name| std::env::var(name).ok())
}
