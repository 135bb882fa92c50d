//! `coracle dns`: the cluster DNS server, a process of its own that keeps answering while the API
//! server is down.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use coracle_api::Value;
use coracle_client::{Client, ConfigError, ObjectKey};
use coracle_dns::{Config, Forward, RunError};
use coracle_settings::{Element, Format, Mistakes, Part, Program, Section, Setting};

use crate::component_port::component_metrics;
use crate::process::{self, ProcessError};
use crate::settings::{self, Arguments, Logs, logs};
use crate::world::WORLD;

/// What the settings set.
#[derive(Default)]
struct Options {
    kubeconfig: Option<PathBuf>,
    listen: Vec<SocketAddr>,
    cluster_domain: String,
    cluster_dns: Vec<IpAddr>,
    upstream: Vec<SocketAddr>,
    resolv_conf: String,
    config_map: Option<MapKey>,
    state: Option<PathBuf>,
    metrics_listen: Option<SocketAddr>,
    wait_for: Option<SocketAddr>,
    logs: Logs,
}

/// `NAMESPACE/NAME`.
#[derive(Clone)]
struct MapKey(ObjectKey);

impl Element for MapKey {
    const KIND: &'static str = "namespace/name";

    fn parse(text: &str) -> Result<MapKey, String> {
        match text.split_once('/') {
            Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => {
                Ok(MapKey(ObjectKey::new(namespace, name)))
            }
            _ => Err(format!("{text:?} is not NAMESPACE/NAME")),
        }
    }

    fn to_value(&self) -> Value {
        Value::from(format!("{}/{}", self.0.namespace, self.0.name))
    }
}

impl Part<Logs> for Options {
    fn part(&mut self) -> &mut Logs {
        &mut self.logs
    }
}

const PROGRAM: Program<Options> = Program {
    name: "dns",
    about: "Runs the cluster DNS server: it answers for Services and their pods, and forwards other queries.",
    sections: &[
        Section {
            name: "generic",
            settings: GENERIC,
        },
        Section {
            name: "logs",
            settings: &logs(),
        },
    ],
    omissions: &[],
    format: Format::None,
};

type S = Setting<Options>;

const GENERIC: &[S] = &[
    S::new(
        "cluster-dns",
        "",
        "Cluster IPs of the DNS Service",
        |options| &mut options.cluster_dns,
    ),
    S::new(
        "cluster-domain",
        "cluster.local",
        "DNS domain of the cluster",
        |options| &mut options.cluster_domain,
    ),
    S::new(
        "config-map",
        "",
        "ConfigMap that customizes the answers: stubDomains and upstreamNameservers as of kube-dns, and hosts, in the form of \
         /etc/hosts. It may be missing",
        |options| &mut options.config_map,
    ),
    S::new(
        "kubeconfig",
        "",
        "Kubeconfig of the cluster. Default: $KUBECONFIG, or the service account of the pod",
        |options| &mut options.kubeconfig,
    ),
    S::new(
        "listen",
        "0.0.0.0:53",
        "Addresses to listen on, UDP and TCP",
        |options| &mut options.listen,
    ),
    S::new(
        "metrics-listen",
        "",
        "Address of /metrics, over HTTP. Default: none",
        |options| &mut options.metrics_listen,
    ),
    S::new(
        "resolv-conf",
        "/etc/resolv.conf",
        "File with the DNS servers to forward to; empty: queries are not forwarded",
        |options| &mut options.resolv_conf,
    ),
    S::new(
        "state",
        "",
        "File in which records are saved, to answer after a restart while the API server is down",
        |options| &mut options.state,
    ),
    S::new(
        "upstream",
        "",
        "DNS servers to forward other queries to. Default: those of --resolv-conf",
        |options| &mut options.upstream,
    ),
    S::new(
        "wait-for",
        "",
        "Only wait until this address accepts a TCP connection, then exit",
        |options| &mut options.wait_for,
    ),
];

/// Why the DNS server cannot run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DnsError {
    #[error(transparent)]
    Settings(#[from] Mistakes),
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

#[cfg(test)]
pub(crate) fn declared() -> settings::declared::Declared {
    settings::declared::Declared::of(&PROGRAM)
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), DnsError> {
    let Some(options) = settings::read(&PROGRAM, arguments)? else {
        return Ok(());
    };
    if let Some(address) = options.wait_for {
        return wait_for(address);
    }
    process::block_on(serve(options))?
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

async fn serve(command: Options) -> Result<(), DnsError> {
    let environment = process::environment();
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
        config_map: command.config_map.map(|key| key.0),
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
