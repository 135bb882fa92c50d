//! `coracle dns`: the cluster DNS server, a process of its own that keeps answering while the API
//! server is down.

use std::ffi::OsString;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use clap::Args;
use coracle_client::{Client, ConfigError, Environment};
use coracle_dns::{Config, Forward, RunError};

use crate::component_port::component_metrics;
use crate::process::{self, ProcessError};
use crate::settings::Logs;
use crate::world::WORLD;

/// Runs the cluster DNS server: it answers for Services and their pods, and forwards other queries.
#[derive(Args)]
pub(crate) struct Dns {
    /// Kubeconfig of the cluster [default: $KUBECONFIG, or the service account of the pod]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Address to listen on, UDP and TCP; may be repeated
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "0.0.0.0:53")]
    listen: Vec<SocketAddr>,
    /// DNS domain of the cluster
    #[arg(long, value_name = "DOMAIN", default_value = "cluster.local")]
    cluster_domain: String,
    /// Cluster IP of the DNS Service; may be repeated
    #[arg(long, value_name = "ADDRESS")]
    cluster_dns: Vec<IpAddr>,
    /// DNS server to forward other queries to; may be repeated [default: those of --resolv-conf]
    #[arg(long, value_name = "ADDRESS:PORT")]
    upstream: Vec<SocketAddr>,
    /// File with the DNS servers to forward to; empty: queries are not forwarded
    #[arg(long, value_name = "FILE", default_value = "/etc/resolv.conf")]
    resolv_conf: OsString,
    /// File in which records are saved, to answer after a restart while the API server is down
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Address of /metrics, over HTTP [default: none]
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics_listen: Option<SocketAddr>,
    /// Only wait until this address accepts a TCP connection, then exit
    #[arg(long, value_name = "ADDRESS:PORT", exclusive = true)]
    wait_for: Option<SocketAddr>,
    /// Log level: 4 and above logs details, 6 and above everything
    #[arg(short, default_value_t = 2, value_name = "LEVEL")]
    verbosity: i32,
}

/// Why the DNS server cannot run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DnsError {
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("{address} accepted no connection within {} s", WAIT_TIMEOUT.as_secs())]
    WaitTimeout {
        address: SocketAddr,
        source: io::Error,
    },
}

/// Timeout and interval of `--wait-for`.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);
const WAIT_INTERVAL: Duration = Duration::from_millis(5);

pub(crate) fn run(command: Dns) -> Result<(), DnsError> {
    if let Some(address) = command.wait_for {
        return wait_for(address);
    }
    process::log(&Logs {
        verbosity: command.verbosity,
        ..Logs::default()
    });
    process::block_on(serve(command))?
}

fn wait_for(address: SocketAddr) -> Result<(), DnsError> {
    let mut attempts = WAIT_TIMEOUT.as_millis() / WAIT_INTERVAL.as_millis();
    loop {
        match TcpStream::connect_timeout(&address, Duration::from_secs(1)) {
            Ok(_) => return Ok(()),
            Err(source) if attempts == 0 => return Err(DnsError::WaitTimeout { address, source }),
            Err(_) => thread::sleep(WAIT_INTERVAL),
        }
        attempts -= 1;
    }
}

async fn serve(command: Dns) -> Result<(), DnsError> {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is where the environment is read"
    )]
    let environment = Environment::read(|name| std::env::var(name).ok());
    let access = coracle_client::Config::load(command.kubeconfig.as_deref(), None, &environment)?;

    let world = coracle_client::World {
        now: WORLD.now,
        random: WORLD.random,
    };
    let client = Client::connect(access, world).await?.named("coracle-dns");
    let client = client.measured(&component_metrics());

    let forward = match (command.upstream.as_slice(), command.resolv_conf.is_empty()) {
        ([], true) => Forward::None,
        ([], false) => Forward::ResolvConf(command.resolv_conf.into()),
        _ => Forward::Servers(command.upstream),
    };

    let config = Config {
        listen: command.listen,
        domain: command.cluster_domain,
        service: command.cluster_dns,
        forward,
        state: command.state,
        metrics: command.metrics_listen,
    };

    let announce = |addresses: &[SocketAddr]| {
        let at: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        process::announce(&format!("DNS server listening on {}\n", at.join(", ")));
    };

    let work = |mut stopped: tokio::sync::watch::Receiver<bool>| async move {
        tokio::select! {
            biased;
            result = coracle_dns::run(config, client, announce) => result,
            _ = stopped.wait_for(|stopped| *stopped) => Ok(()),
        }
    };

    Ok(process::until_signalled(work).await??)
}
