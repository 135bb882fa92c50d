//! `coracle dns`: the names of a cluster, answered by a process of their own, so that they outlive
//! the server.

use std::ffi::OsString;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use clap::Args;
use coracle_client::{Client, ConfigError, Environment};
use coracle_dns::{Config, Forward, RunError};

use crate::process::{self, ProcessError};
use crate::world::WORLD;

/// Answers the names of a cluster's Services and of the pods behind them, and asks others about all
/// other names.
#[derive(Args)]
pub(crate) struct Dns {
    /// Kubeconfig of the cluster; without it, what a pod finds or $KUBECONFIG says
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Address to answer on, UDP and TCP; may be given several times
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "0.0.0.0:53")]
    listen: Vec<SocketAddr>,
    /// The cluster's domain
    #[arg(long, value_name = "DOMAIN", default_value = "cluster.local")]
    cluster_domain: String,
    /// Address of the DNS Service itself; may be given several times
    #[arg(long, value_name = "ADDRESS")]
    cluster_dns: Vec<IpAddr>,
    /// Server to ask about other names; may be given several times. Without it, those of
    /// --resolv-conf
    #[arg(long, value_name = "ADDRESS:PORT")]
    upstream: Vec<SocketAddr>,
    /// File that names the servers to ask; empty: nobody is asked
    #[arg(long, value_name = "FILE", default_value = "/etc/resolv.conf")]
    resolv_conf: OsString,
    /// File that keeps what was last known, to be answered while the API server is away
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Answer nothing, and wait until this address takes a connection
    #[arg(long, value_name = "ADDRESS:PORT", exclusive = true)]
    wait_for: Option<SocketAddr>,
    /// How much is logged
    #[arg(short, default_value_t = 2, value_name = "LEVEL")]
    verbosity: i64,
}

/// Why names cannot be answered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DnsError {
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("{address} took no connection for {} s", PATIENCE.as_secs())]
    Silent {
        address: SocketAddr,
        source: io::Error,
    },
}

/// So long an address is waited for, and asked so often.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(5);

pub(crate) fn run(command: Dns) -> Result<(), DnsError> {
    if let Some(address) = command.wait_for {
        return wait_for(address);
    }
    process::log(command.verbosity);
    process::block_on(serve(command))?
}

fn wait_for(address: SocketAddr) -> Result<(), DnsError> {
    let mut pauses = PATIENCE.as_millis() / PAUSE.as_millis();
    loop {
        match TcpStream::connect_timeout(&address, Duration::from_secs(1)) {
            Ok(_) => return Ok(()),
            Err(source) if pauses == 0 => return Err(DnsError::Silent { address, source }),
            Err(_) => thread::sleep(PAUSE),
        }
        pauses -= 1;
    }
}

async fn serve(command: Dns) -> Result<(), DnsError> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the environment is a person's to set, and read here alone"
    )]
    let environment = Environment::read(|name| std::env::var(name).ok());
    let access = coracle_client::Config::load(command.kubeconfig.as_deref(), None, &environment)?;

    let world = coracle_client::World {
        now: WORLD.now,
        random: WORLD.random,
    };
    let client = Client::connect(access, world).await?.named("coracle-dns");

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
    };

    let announce = |addresses: &[SocketAddr]| {
        let at: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        process::announce(&format!("answering names on {}\n", at.join(", ")));
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
