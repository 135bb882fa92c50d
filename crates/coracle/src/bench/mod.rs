//! `coracle bench`: what a server can do, measured from outside through its API.
//!
//! A [`target`] is read from a kubeconfig; each client is one [`connection`] to it that asks again
//! as soon as it is answered. A [`scene`] says what is asked, [`load`] asks it, and [`report`]
//! tells how long it took and, of a server on this machine, what it cost it. Everything happens in
//! a namespace of its own, which is deleted in the end.

mod connection;
mod load;
mod objects;
mod pods;
mod report;
mod scene;
mod target;
mod usage;
mod watching;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use coracle_client::ConfigError;

use crate::process::{self, ProcessError};
use connection::RequestError;
use target::{Target, TargetError};

/// Measures what a server can do: requests per second, how long they take, and what they cost it.
#[derive(Args)]
pub(crate) struct Bench {
    /// How to reach the server
    #[arg(long, value_name = "FILE", global = true)]
    kubeconfig: Option<PathBuf>,
    /// The server's process, if it is on this machine: its CPU and memory are reported; of several,
    /// their sum
    #[arg(long, value_name = "PID", global = true)]
    server_pid: Vec<u32>,
    /// How many clients ask at once, each on a connection of its own
    #[arg(long, value_name = "COUNT", default_value_t = 16, global = true)]
    clients: usize,
    /// How long to ask
    #[arg(long, value_name = "SECONDS", default_value_t = 10, global = true)]
    seconds: u64,
    /// How large an object is, about
    #[arg(long, value_name = "BYTES", default_value_t = 1024, global = true)]
    size: usize,
    /// Begin when so many nodes are ready
    #[arg(long, value_name = "COUNT", default_value_t = 0, global = true)]
    nodes: usize,
    /// Speak HTTP/2 instead of HTTP/1.1
    #[arg(long, global = true)]
    http2: bool,
    /// For programs: a line `name value` for each figure
    #[arg(long, global = true)]
    plain: bool,
    #[command(subcommand)]
    what: What,
}

#[derive(Clone, Debug, Subcommand)]
enum What {
    /// Create ConfigMaps
    Create,
    /// Get ConfigMaps, one by one
    Get,
    /// Patch ConfigMaps, each client its own
    Patch,
    /// List pods
    List {
        /// How many there are
        #[arg(long, value_name = "COUNT", default_value_t = 10_000)]
        objects: usize,
        /// Ask for compressed lists
        #[arg(long)]
        gzip: bool,
    },
    /// Watch ConfigMaps while they change
    Watch {
        /// How many watch
        #[arg(long, value_name = "COUNT", default_value_t = 200)]
        watchers: usize,
        /// How many changes there are
        #[arg(long, value_name = "COUNT", default_value_t = 5_000)]
        events: usize,
    },
    /// Create pods and leave them, to see what they take
    Fill {
        /// How many
        #[arg(long, value_name = "COUNT", default_value_t = 10_000)]
        objects: usize,
        /// Create ConfigMaps instead, of which nothing follows
        #[arg(long)]
        config_maps: bool,
    },
    /// Create single pods, and see how fast they get nodes and become ready; needs nodes, real or
    /// simulated
    Schedule {
        /// How many
        #[arg(long, value_name = "COUNT", default_value_t = 3_000)]
        pods: usize,
    },
    /// Create a Deployment, and see how fast its pods get nodes and become ready; needs nodes, real
    /// or simulated
    Deploy {
        /// How many pods it has
        #[arg(long, value_name = "COUNT", default_value_t = 1_000)]
        replicas: usize,
    },
    /// Ask nothing, and see what the server uses meanwhile
    Idle,
    /// Of ten requests six get, two patch, one creates, one lists twenty
    Mixed,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum BenchError {
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error("there is no way to the server")]
    Config(#[from] ConfigError),
    #[error("--server-pid must be given: what the server uses is all there is to see")]
    NoProcess,
    #[error("{0}: its usage cannot be read: {1}")]
    Usage(u32, std::io::Error),
}

#[expect(
    clippy::print_stdout,
    reason = "a benchmark reports to whoever started it"
)]
pub(crate) fn run(command: &Bench) -> Result<(), BenchError> {
    let target = Target::read(command.kubeconfig.as_deref(), command.http2)?;
    let report = process::block_on(scene::play(command, &target))??;
    print!(
        "{}",
        if command.plain {
            report.plain()
        } else {
            report.to_string()
        }
    );
    Ok(())
}

impl Bench {
    fn lasts(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}
