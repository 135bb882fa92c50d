//! `coracle kube-controller-manager`: the controllers as a process of their own, over HTTPS, with
//! upstream's flags.

mod flags;
mod nodes;
mod not_yet;
mod settings;

use std::sync::Arc;

use clap::Args;
use coracle_client::election::{Election, InvalidDurations, Lost};
use coracle_client::transport::{Https, ServiceAccountTransport};
use coracle_client::{Client, Config, ConfigError, Environment, Recorder, Tasks};
use coracle_controllers::manager::UnknownController;
use coracle_controllers::{Context, Manager, Selected};

use crate::controllers;
use crate::flags::{self as command_line, Mistakes, Parsed};
use crate::host;
use crate::process::{self, ProcessError};
use crate::world::WORLD;
use flags::Options;
use settings::SettingsError;

/// Runs the controllers alone.
#[derive(Args)]
pub(crate) struct KubeControllerManager {
    /// Upstream's flags; `--help` lists them
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "FLAGS"
    )]
    arguments: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ManagerError {
    #[error(transparent)]
    CommandLine(#[from] Mistakes),
    #[error("--controllers: {0}")]
    Controllers(#[from] UnknownController),
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Election(#[from] InvalidDurations),
    #[error("cannot configure the API client")]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error(transparent)]
    Lost(#[from] Lost),
}

pub(crate) fn run(command: &KubeControllerManager) -> Result<(), ManagerError> {
    let mut options = Options::default();
    match command_line::parse(&flags::TABLE, &command.arguments, &mut options)? {
        Parsed::Help => process::print(command_line::help(&flags::TABLE)),
        Parsed::Version => {
            process::print_line(format_args!("Kubernetes {}", coracle_apiserver::VERSION))
        }
        Parsed::Run => {
            process::log(options.verbosity);
            process::block_on(manage(&options))??;
        }
    }

    Ok(())
}

async fn manage(options: &Options) -> Result<(), ManagerError> {
    let everything = ["*".to_string()];
    let named = if options.controllers.is_empty() {
        &everything
    } else {
        options.controllers.as_slice()
    };

    let selected = Selected::parse(named)?;
    let manager = options.nodes.complete(Manager {
        selected,
        ..options.manager.clone()
    })?;

    let election = election(options);
    election.check()?;

    #[expect(
        clippy::disallowed_methods,
        reason = "this is where the environment is read"
    )]
    let environment = Environment::read(|name| std::env::var(name).ok());

    let server = Some(options.master.as_str()).filter(|server| !server.is_empty());
    let config = Config::load(options.kubeconfig.as_deref(), server, &environment)?;
    let manager = settings::complete(manager, options, &config)?;
    let client = Client::connect(config.clone(), WORLD)
        .await?
        .named(&controllers::user_agent(""));
    let tasks = Tasks::new();

    let own = own_clients(options, config, &client).await?;
    let context = Context::new(&client, own, tasks.clone());
    let recorder = Recorder::new(&client, &options.lease_name, &tasks);

    process::announce("kube-controller-manager is ready\n");
    let result = process::until_signalled(async |mut stop| {
        let work = async || manager.run(&context).await;
        let stopped = async { drop(stop.wait_for(|stop| *stop).await) };
        tokio::select! {
            biased;
            () = stopped => Ok(()),
            result = lead(options.leader_elect, &election, &client, &recorder, work) => result,
        }
    })
    .await;

    tasks.stop().await;

    Ok(result??)
}

/// The clients of the controllers: the credentials of the process, with one shared rate limit, or a
/// service account of its own for each.
async fn own_clients(
    options: &Options,
    config: Config,
    client: &Client,
) -> Result<impl Fn(&str) -> Client + Send + Sync + 'static, ConfigError> {
    let (qps, burst) = (
        f64::from(u32::try_from(options.qps).unwrap_or(0)),
        u32::try_from(options.burst).unwrap_or(1),
    );

    let (credentials, impersonate) = Default::default();
    let anonymous = Https::new(
        Config {
            credentials,
            impersonate,
            ..config
        },
        WORLD,
    )
    .await?;

    let (anonymous, client, own_accounts) =
        (Arc::new(anonymous), client.clone(), options.own_accounts);
    let shared = client.clone().limited(qps, burst);

    Ok(move |account: &str| {
        let own = match own_accounts {
            true => {
                let transport = ServiceAccountTransport::new(
                    anonymous.clone(),
                    &client,
                    "kube-system",
                    account,
                );
                Client::new(Arc::new(transport), WORLD).limited(qps, burst)
            }
            false => shared.clone(),
        };
        own.named(&controllers::user_agent(account))
    })
}

/// Runs `work`, with or without leader election.
async fn lead(
    elect: bool,
    election: &Election,
    client: &Client,
    recorder: &Recorder,
    work: impl AsyncFnOnce(),
) -> Result<(), Lost> {
    match elect {
        true => election.lead(client, recorder, async || work().await).await,
        false => {
            work().await;
            Ok(())
        }
    }
}

fn election(options: &Options) -> Election {
    let identity = format!("{}_{}", host::name(), WORLD.uid());
    Election {
        lease_duration: options.lease_duration,
        renew_deadline: options.renew_deadline,
        retry_period: options.retry_period,
        ..Election::new(&options.lease_namespace, &options.lease_name, &identity)
    }
}
