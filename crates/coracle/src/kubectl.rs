//! `coracle kubectl`: the kubectl that the host has, let into the cluster of a data directory.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use clap::Args;

use crate::instance::DEFAULT_DATA_DIR;

/// Runs the kubectl that is on PATH as the administrator of this machine's cluster.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Kubectl {
    /// Data directory of the cluster
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DATA_DIR)]
    data_dir: PathBuf,
    /// What kubectl is asked
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGUMENTS"
    )]
    arguments: Vec<OsString>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum KubectlError {
    #[error("{}: no cluster has been started with this data directory; `coracle server` makes one", .0.display())]
    NoCluster(PathBuf),
    #[error("kubectl is not on PATH")]
    NoKubectl,
    #[error("kubectl cannot be started")]
    Start(#[source] io::Error),
}

/// Becomes kubectl: returns only when that is impossible.
pub(crate) fn run(command: &Kubectl) -> Result<(), KubectlError> {
    let access = command.data_dir.join("admin.kubeconfig");
    if !access.exists() {
        return Err(KubectlError::NoCluster(access));
    }

    let error = Command::new("kubectl")
        .env("KUBECONFIG", access)
        .args(&command.arguments)
        .exec();

    Err(if error.kind() == io::ErrorKind::NotFound {
        KubectlError::NoKubectl
    } else {
        KubectlError::Start(error)
    })
}
