//! `coracle simulated-nodes`: simulated nodes for a cluster whose API server is another process,
//! also one of upstream's.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use coracle_client::{Client, Config, ConfigError, Journal, Tasks};

use crate::process::{self, ProcessError};
use crate::settings::Logs;
use crate::world::WORLD;

/// Runs simulated nodes: they exist in the API only, and pods scheduled on them appear to run.
#[derive(Args)]
pub(crate) struct SimulatedNodes {
    /// Kubeconfig of a user who may do what kubelets and the scheduler may; the nodes act as that user
    #[arg(long, value_name = "FILE")]
    kubeconfig: PathBuf,
    /// Number of nodes
    #[arg(long, value_name = "NUMBER", default_value = "3")]
    nodes: usize,
    /// Time between renewals of a node's lease in seconds
    #[arg(long, value_name = "SECONDS", default_value = "10")]
    renew_every: u64,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum SimulatedNodesError {
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error("cannot configure the API client")]
    Config(#[from] ConfigError),
}

pub(crate) fn run(command: &SimulatedNodes) -> Result<(), SimulatedNodesError> {
    process::log(&Logs::default());
    process::block_on(simulate(command))?
}

async fn simulate(command: &SimulatedNodes) -> Result<(), SimulatedNodesError> {
    let access = Config::load(Some(&command.kubeconfig), None, &process::environment())?;
    let client = Client::connect(access, WORLD).await?;
    let config = coracle_simnode::Config {
        nodes: command.nodes,
        renew_every: Duration::from_secs(command.renew_every.max(1)),
        version: coracle_apiserver::VERSION.into(),
    };

    let tasks = Tasks::new();
    let (reader, own) = (
        client.clone().named("coracle-simulated-nodes"),
        client.named("kubelet"),
    );
    process::until_signalled(async |mut stop| {
        let nodes = coracle_simnode::run(
            config,
            &reader,
            move |_| own.clone(),
            Journal::new(),
            &tasks,
        );
        tokio::select! {
            () = nodes => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
    })
    .await?;
    tasks.stop().await;
    Ok(())
}
