//! `coracle kube-apiserver`: the API server alone, with upstream's flags, on the embedded store or
//! an etcd.

mod access;
mod browsers;
mod complete;
mod kubelets;
mod omissions;
mod options;
mod program;

use std::io;
use std::net::SocketAddr;

use coracle_apiserver::{InProcess, Listeners, RunError, serve};
use coracle_client::{Journal, Tasks};
use coracle_controllers::manager::UnknownController;
use coracle_controllers::{Manager, Selected};
use coracle_serving::Flag;
use coracle_settings::Mistakes;

use crate::certificates::CertificateError;
use crate::component_port::component_metrics;
use crate::controllers;
use crate::process::{self, ProcessError};
use crate::settings::{self, Arguments};
use crate::storage::StorageError;
use crate::world::WORLD;
use complete::complete;
use options::Options;
use program::PROGRAM;

#[derive(Debug, thiserror::Error)]
pub(crate) enum ServerError {
    #[error(transparent)]
    CommandLine(#[from] Mistakes),
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    #[error("cannot listen on {address}: {error}")]
    Bind {
        address: SocketAddr,
        error: io::Error,
    },
    #[error("--controllers")]
    Controllers(#[from] UnknownController),
    #[error(transparent)]
    Run(#[from] RunError),
}

#[cfg(test)]
pub(crate) fn declared() -> settings::declared::Declared {
    settings::declared::Declared::of(&PROGRAM)
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), ServerError> {
    match settings::read(&PROGRAM, arguments)? {
        Some(mut options) => {
            let flags = PROGRAM.flags(&mut options);
            process::block_on(serve(&options, flags))?
        }
        None => Ok(()),
    }
}

async fn serve(options: &Options, flags: Vec<Flag>) -> Result<(), ServerError> {
    options.feature_gates.set()?;
    let mut settings = complete(options)?;
    settings.config.flags = flags;
    let selected = Selected::parse(&options.controllers)?;
    if let Some(own) = &settings.own_certificate {
        own.ensure()?;
    }

    let opened = settings.storage.open()?;
    let address = settings.listen;
    let listener = serve::bind(address, options.serving.permit_port_sharing)
        .map_err(|error| ServerError::Bind { address, error })?;

    let in_process = InProcess::default();
    let tasks = Tasks::new();
    if !options.controllers.is_empty() {
        run_controllers(selected, &in_process, &settings.config.journal, &tasks);
    }

    let ready = || process::announce(&format!("kube-apiserver is ready at https://{address}\n"));
    let result = process::until_signalled(|stop| {
        let listeners = Listeners {
            listener: Some(listener),
            in_process,
        };

        coracle_apiserver::run(
            &settings.config,
            listeners,
            opened.store.clone(),
            WORLD,
            stop,
            ready,
        )
    })
    .await;

    tasks.stop().await;
    opened.close().await;

    Ok(result??)
}

/// Starts controllers in this process. Their requests wait until the API server is up.
fn run_controllers(selected: Selected, in_process: &InProcess, journal: &Journal, tasks: &Tasks) {
    let manager = Manager {
        selected,
        ..Manager::default()
    };
    let (in_process, journal) = (in_process.clone(), journal.clone());
    tasks.spawn(async move {
        let metrics = component_metrics();
        controllers::run(&in_process, &manager, None, &journal, &metrics).await;
    });
}
