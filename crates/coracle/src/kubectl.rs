//! `coracle kubectl`: runs the host's kubectl with the administrator kubeconfig of a data
//! directory.

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
    /// Arguments of kubectl
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGUMENTS"
    )]
    arguments: Vec<OsString>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum KubectlError {
    #[error("{}: no cluster in this data directory; create one with `coracle server`", .0.display())]
    NoCluster(PathBuf),
    #[error("kubectl is not on PATH; install it from https://kubernetes.io/docs/tasks/tools/")]
    NoKubectl,
    #[error("cannot start kubectl")]
    Start(#[source] io::Error),
}

/// Replaces this process with kubectl; returns only on failure.
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
