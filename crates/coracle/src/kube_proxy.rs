//! `coracle kube-proxy`: the proxy alone, with upstream's flags that apply.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use std::{fs, io};

use clap::{ArgAction, Args};
use coracle_client::{Client, Environment};
use coracle_proxy::compile::NodePortAddresses;
use coracle_proxy::config::{ConfigError, File};
use coracle_proxy::{Config, DetectLocal, RunError};
use ipnet::IpNet;

use crate::host;
use crate::process::{self, ProcessError};
use crate::world::WORLD;

/// Runs the proxy alone: it leads packets for Services to pods, by rules of this machine's kernel.
/// They stay when it ends.
#[derive(Args)]
pub(crate) struct KubeProxy {
    /// How to reach the API server, and as whom
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// A KubeProxyConfiguration; the other flags count only without it, but for --kubeconfig,
    /// --hostname-override, --cleanup and -v
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The node's name, if it is not this machine's
    #[arg(long, value_name = "NAME")]
    hostname_override: Option<String>,
    /// How packets are led: nftables is all there is
    #[arg(long, value_name = "MODE", default_value = "nftables", value_parser = ["", "nftables"])]
    proxy_mode: String,
    /// The addresses of pods: their packets keep their source
    #[arg(long, value_name = "RANGES", value_delimiter = ',')]
    cluster_cidr: Vec<IpNet>,
    /// How packets of this node's pods are recognized
    #[arg(long, value_name = "MODE", default_value = "ClusterCIDR", value_parser = ["ClusterCIDR", "NodeCIDR", "BridgeInterface", "InterfaceNamePrefix"])]
    detect_local_mode: String,
    /// With BridgeInterface: its name
    #[arg(long, value_name = "NAME", default_value = "", value_parser = interface)]
    pod_bridge_interface: String,
    /// With InterfaceNamePrefix: how names begin
    #[arg(long, value_name = "PREFIX", default_value = "", value_parser = interface)]
    pod_interface_name_prefix: String,
    /// Addresses of this node at which ports of the node answer, as ranges; without it, those of
    /// the Node object
    #[arg(long, value_name = "RANGES", value_delimiter = ',')]
    nodeport_addresses: Vec<IpNet>,
    /// Hide the source of everything that goes to cluster addresses
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_value_t = false, default_missing_value = "true", action = ArgAction::Set)]
    masquerade_all: bool,
    /// Where /healthz and /livez answer
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "0.0.0.0:10256")]
    healthz_bind_address: SocketAddr,
    /// End if nobody can listen there
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_value_t = false, default_missing_value = "true", action = ArgAction::Set)]
    bind_address_hard_fail: bool,
    /// Take all rules away, and end
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_value_t = false, default_missing_value = "true", action = ArgAction::Set)]
    cleanup: bool,
    /// How much is logged
    #[arg(long, short, value_name = "LEVEL", default_value_t = 0, action = ArgAction::Set)]
    v: i64,
}

/// It goes into rules as it is.
fn interface(text: &str) -> Result<String, String> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@:".contains(&byte);
    let fits = text.len() <= 15 && text.bytes().all(good);
    if fits {
        Ok(text.to_owned())
    } else {
        Err("is no name of an interface".to_owned())
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ProxyError {
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error("{}: cannot be read: {error}", file.display())]
    Read { file: PathBuf, error: io::Error },
    #[error("{}", file.display())]
    File { file: PathBuf, source: ConfigError },
    #[error(transparent)]
    Client(#[from] coracle_client::ConfigError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Filter(#[from] coracle_proxy::nft::FilterError),
}

pub(crate) fn run(command: &KubeProxy) -> Result<(), ProxyError> {
    process::log(command.v);
    let File { config, kubeconfig } = read(command)?;
    if command.cleanup {
        return Ok(coracle_proxy::clean(&config.table)?);
    }
    process::block_on(lead(command, config, &kubeconfig))?
}

async fn lead(command: &KubeProxy, config: Config, named: &str) -> Result<(), ProxyError> {
    let named = (!named.is_empty()).then(|| PathBuf::from(named));
    let environment = environment();
    let access = match command.kubeconfig.clone().or(named) {
        Some(file) => coracle_client::Config::load(Some(&file), None, &environment)?,
        None => coracle_client::Config::in_cluster(&environment)?,
    };
    let client = Client::connect(access, WORLD).await?.named("kube-proxy");

    let ready = || process::announce("the kernel knows all Services\n");
    let work = |mut stop: tokio::sync::watch::Receiver<bool>| async move {
        tokio::select! {
            biased;
            result = coracle_proxy::run(config, client, ready) => result,
            _ = stop.wait_for(|stop| *stop) => Ok(()),
        }
    };

    Ok(process::until_signalled(work).await??)
}

fn read(command: &KubeProxy) -> Result<File, ProxyError> {
    let mut file = match &command.config {
        None => File {
            config: from_flags(command),
            kubeconfig: String::new(),
        },
        Some(file) => {
            let text = fs::read(file).map_err(|error| ProxyError::Read {
                file: file.clone(),
                error,
            })?;
            Config::from_file(&text).map_err(|source| ProxyError::File {
                file: file.clone(),
                source,
            })?
        }
    };

    if let Some(name) = &command.hostname_override {
        file.config.node = name.trim().to_lowercase();
    }
    if file.config.node.is_empty() {
        file.config.node = host::name().to_lowercase();
    }

    Ok(file)
}

fn from_flags(command: &KubeProxy) -> Config {
    let detect_local = match command.detect_local_mode.as_str() {
        "NodeCIDR" => DetectLocal::NodeRanges,
        "BridgeInterface" => DetectLocal::Bridge(command.pod_bridge_interface.clone()),
        "InterfaceNamePrefix" => {
            DetectLocal::InterfacePrefix(command.pod_interface_name_prefix.clone())
        }
        _ => DetectLocal::ClusterRanges(command.cluster_cidr.clone()),
    };

    let node_port_addresses = match command.nodeport_addresses.as_slice() {
        [] => NodePortAddresses::Primary,
        ranges => NodePortAddresses::Ranges(ranges.to_vec()),
    };

    Config {
        detect_local,
        node_port_addresses,
        masquerade_all: command.masquerade_all,
        healthz: Some(command.healthz_bind_address),
        bind_hard_fail: command.bind_address_hard_fail,
        min_sync_period: Duration::from_secs(1),
        ..Config::default()
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is where configuration is read from the environment"
)]
fn environment() -> Environment {
    Environment::read(|name| std::env::var(name).ok())
}
