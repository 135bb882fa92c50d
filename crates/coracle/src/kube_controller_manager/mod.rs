//! `coracle kube-controller-manager`: the controllers as a process of their own, over HTTPS, with
//! upstream's flags.

mod files;
mod omissions;
mod options;
mod program;

use std::sync::Arc;

use coracle_api::codec::json;
use coracle_client::election::{Election, InvalidDurations, Lost};
use coracle_client::transport::{Https, ServiceAccountTransport};
use coracle_client::{Client, Config, ConfigError, Recorder, Tasks};
use coracle_controllers::manager::UnknownController;
use coracle_controllers::{Context, Manager};
use coracle_serving::{Flag, Settings};
use coracle_settings::Mistakes;

use crate::component_port::{self, Port, PortError, component_metrics};
use crate::controllers;
use crate::process::{self, ProcessError};
use crate::settings::{self, Arguments};
use crate::world::WORLD;
use files::FilesError;
use options::Options;
use program::PROGRAM;

#[derive(Debug, thiserror::Error)]
pub(crate) enum ManagerError {
    #[error(transparent)]
    CommandLine(#[from] Mistakes),
    #[error("--controllers: {0}")]
    Controllers(#[from] UnknownController),
    #[error(transparent)]
    Files(#[from] FilesError),
    #[error(transparent)]
    Election(#[from] InvalidDurations),
    #[error("cannot configure the API client")]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error(transparent)]
    Lost(#[from] Lost),
    #[error(transparent)]
    Port(#[from] PortError),
}

#[cfg(test)]
pub(crate) fn declared() -> settings::declared::Declared {
    settings::declared::Declared::of(&PROGRAM)
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), ManagerError> {
    match settings::read(&PROGRAM, arguments)? {
        Some(mut options) => {
            let shown = shown(&mut options);
            process::block_on(manage(&options, shown))?
        }
        None => Ok(()),
    }
}

/// The keys of the settings are those of upstream's internal configuration, which no file has.
fn shown(options: &mut Options) -> Settings {
    let mut config = PROGRAM.configuration(options);
    if let Some(config) = config.as_object_mut() {
        config.insert("apiVersion", "kubecontrollermanager.config.k8s.io/v1alpha1");
        config.insert("kind", "KubeControllerManagerConfiguration");
        for (own, generic) in [
            ("clientConnection", "ClientConnection"),
            ("leaderElection", "LeaderElection"),
        ] {
            if let Some(shared) = config.remove(own) {
                config.object_mut("Generic").insert(generic, shared);
            }
        }
    }

    let config = String::from_utf8(json::to_vec(&config)).expect("JSON is UTF-8");
    Settings {
        config: Some(("kubecontrollermanager.config.k8s.io", config)),
        flags: Some(PROGRAM.flags(options)),
    }
}

/// What these controllers show of their settings, in a process with these flags.
pub(crate) fn shown_in(flags: &[Flag], manager: &Manager) -> Settings {
    let mut options = Options {
        manager: manager.clone(),
        ..PROGRAM.defaults()
    };
    Settings {
        flags: Some(flags.to_vec()),
        ..shown(&mut options)
    }
}

async fn manage(options: &Options, shown: Settings) -> Result<(), ManagerError> {
    options.feature_gates.set()?;
    let manager = Manager {
        selected: options.selected()?,
        ..options.complete()?
    };

    let election = options.election.election();
    election.check()?;

    let config = options.api.access()?;
    let manager = files::complete(manager, options, &config)?;
    let metrics = component_metrics();
    let client = Client::connect(config.clone(), WORLD)
        .await?
        .named(&controllers::user_agent(""))
        .measured(&metrics);
    let tasks = Tasks::new();

    let port_options = component_port::options(&options.serving, &options.delegation)?;
    if let Some(port) = Port::open("kube-controller-manager", &port_options).await? {
        let leads = options.election.enabled.then_some(&election);
        let about = component_port::about_controllers(&metrics, leads, shown);
        let reviews = component_port::reviews(&client, &options.delegation).await?;
        let component = component_port::component(about, &client, reviews, &port_options, &tasks)?;
        port.serve(component, &tasks);
    }

    let own = own_clients(options, config, &client).await?;
    let context = Context::new(&client, own, tasks.clone());
    let recorder = Recorder::new(&client, &options.election.name, &tasks);

    process::announce("kube-controller-manager is ready\n");
    let result = process::until_signalled(async |mut stop| {
        let work = async || manager.run(&context).await;
        let stopped = async { drop(stop.wait_for(|stop| *stop).await) };
        tokio::select! {
            biased;
            () = stopped => Ok(()),
            result = lead(options.election.enabled, &election, &client, &recorder, work) => result,
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
    let api = options.api.clone();
    let shared = api.limit(client.clone());

    Ok(move |account: &str| {
        let own = match own_accounts {
            true => {
                let transport = ServiceAccountTransport::new(
                    anonymous.clone(),
                    &client,
                    "kube-system",
                    account,
                );
                let own = Client::new(Arc::new(transport), WORLD).host(&client.host_name());
                api.limit(own.measured(client.metrics()))
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
