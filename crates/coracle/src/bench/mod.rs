//! `coracle bench`: benchmarks of an API server, as a client. A [`target`] is read from a
//! kubeconfig; each client is one [`connection`] to it. A [`scene`] is one benchmark, [`load`]
//! sends its requests, and [`report`] prints rates, latencies and, for a server on this machine,
//! its CPU and memory usage. Each run uses a namespace of its own, which is deleted at the end.

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

/// Benchmarks an API server: request rate, latency, CPU and memory usage.
#[derive(Args)]
pub(crate) struct Bench {
    /// Kubeconfig of the server
    #[arg(long, value_name = "FILE", global = true)]
    kubeconfig: Option<PathBuf>,
    /// PID of a server on this machine, to report its CPU and memory usage; may be repeated, values
    /// are added up
    #[arg(long, value_name = "PID", global = true)]
    server_pid: Vec<u32>,
    /// Number of concurrent clients, each with its own connection
    #[arg(long, value_name = "COUNT", default_value_t = 16, global = true)]
    clients: usize,
    /// Duration of the benchmark
    #[arg(long, value_name = "SECONDS", default_value_t = 10, global = true)]
    seconds: u64,
    /// Approximate size of an object
    #[arg(long, value_name = "BYTES", default_value_t = 1024, global = true)]
    size: usize,
    /// Wait until this many nodes are ready
    #[arg(long, value_name = "COUNT", default_value_t = 0, global = true)]
    nodes: usize,
    /// Use HTTP/2 instead of HTTP/1.1
    #[arg(long, global = true)]
    http2: bool,
    /// Machine-readable output: one line `name value` per figure
    #[arg(long, global = true)]
    plain: bool,
    #[command(subcommand)]
    what: Benchmark,
}

#[derive(Clone, Debug, Subcommand)]
enum Benchmark {
    /// Create ConfigMaps
    Create,
    /// Get single ConfigMaps
    Get,
    /// Patch ConfigMaps, each client another one
    Patch,
    /// List pods
    List {
        /// Number of pods
        #[arg(long, value_name = "COUNT", default_value_t = 10_000)]
        objects: usize,
        /// Request compressed responses
        #[arg(long)]
        gzip: bool,
    },
    /// Watch ConfigMaps while they are changed
    Watch {
        /// Number of watches
        #[arg(long, value_name = "COUNT", default_value_t = 200)]
        watchers: usize,
        /// Number of changes
        #[arg(long, value_name = "COUNT", default_value_t = 5_000)]
        events: usize,
    },
    /// Create pods and keep them, to measure memory per object
    Fill {
        /// Number of objects
        #[arg(long, value_name = "COUNT", default_value_t = 10_000)]
        objects: usize,
        /// Create ConfigMaps instead, on which no controller acts
        #[arg(long)]
        config_maps: bool,
    },
    /// Create single pods and measure how fast they are bound and become ready; needs real or
    /// simulated nodes
    Schedule {
        /// Number of pods
        #[arg(long, value_name = "COUNT", default_value_t = 3_000)]
        pods: usize,
    },
    /// Create a Deployment and measure how fast its pods are bound and become ready; needs real or
    /// simulated nodes
    Deploy {
        /// Number of replicas
        #[arg(long, value_name = "COUNT", default_value_t = 1_000)]
        replicas: usize,
    },
    /// Send no requests and measure the usage of the server
    Idle,
    /// Mixed load: 60 % get, 20 % patch, 10 % create, 10 % list of 20 objects
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
    #[error("cannot configure the API client")]
    Config(#[from] ConfigError),
    #[error("--server-pid is required: `idle` measures the usage of the server process")]
    NoProcess,
    #[error("cannot read the usage of process {0}: {1}")]
    Usage(u32, std::io::Error),
}

#[expect(clippy::print_stdout, reason = "a benchmark prints its results")]
pub(crate) fn run(command: &Bench) -> Result<(), BenchError> {
    let target = Target::read(command.kubeconfig.as_deref(), command.http2)?;
    let report = process::block_on(scene::run(command, &target))??;
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
