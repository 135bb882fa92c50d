//! `coracle kube-apiserver`: the API server alone, with upstream's flags, on the embedded store or
//! an etcd.

mod access;
mod complete;
mod kubelets;
mod omissions;
mod options;
mod program;

use std::io;
use std::net::SocketAddr;

use coracle_apiserver::{InProcess, Listeners, RunError, serve};
use coracle_serving::Flag;
use coracle_settings::Mistakes;

use crate::certificates::CertificateError;
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
    if let Some(own) = &settings.own_certificate {
        own.ensure()?;
    }

    let opened = settings.storage.open()?;
    let address = settings.listen;
    let listener = serve::bind(address)
        .await
        .map_err(|error| ServerError::Bind { address, error })?;

    let ready = || process::announce(&format!("kube-apiserver is ready at https://{address}\n"));
    let result = process::until_signalled(|stop| {
        let listeners = Listeners {
            listener: Some(listener),
            in_process: InProcess::default(),
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

    opened.close().await;

    Ok(result??)
}
