//! `coracle kube-apiserver`: the API server alone, with upstream's flags, on the embedded store or
//! an etcd.

mod access;
mod complete;
mod flags;
mod kubelets;
mod not_yet;
mod options;

use std::io;
use std::net::SocketAddr;

use clap::Args;
use coracle_apiserver::{Doors, InProcess, RunError, serve};

use crate::certificates::CertificateError;
use crate::flags::{self as command_line, Mistakes, Parsed};
use crate::process::{self, ProcessError};
use crate::storage::StorageError;
use crate::world::WORLD;
use complete::complete;
use options::Options;

/// Runs the API server alone.
#[derive(Args)]
pub(crate) struct KubeApiserver {
    /// Upstream's flags; `--help` lists them
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "FLAGS"
    )]
    arguments: Vec<String>,
}

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

pub(crate) fn run(command: &KubeApiserver) -> Result<(), ServerError> {
    let mut options = Options::default();
    match command_line::parse(&flags::TABLE, &command.arguments, &mut options)? {
        Parsed::Help => process::print(command_line::help(&flags::TABLE)),
        Parsed::Version => {
            process::print_line(format_args!("Kubernetes {}", coracle_apiserver::VERSION))
        }
        Parsed::Run => {
            process::log(options.verbosity);
            process::block_on(serve(&options))??;
        }
    }

    Ok(())
}

async fn serve(options: &Options) -> Result<(), ServerError> {
    let settings = complete(options)?;
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
        let doors = Doors {
            listener: Some(listener),
            in_process: InProcess::default(),
        };

        coracle_apiserver::run(
            &settings.config,
            doors,
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
