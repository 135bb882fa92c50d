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

/// Runs the service proxy alone: it programs nftables rules that forward Service traffic to pods.
/// The rules stay when it stops.
#[derive(Args)]
pub(crate) struct KubeProxy {
    /// Kubeconfig with the API server and the credentials
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// File with a KubeProxyConfiguration; other flags are ignored then, except --kubeconfig,
    /// --hostname-override, --cleanup and -v
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Name of the node [default: the hostname]
    #[arg(long, value_name = "NAME")]
    hostname_override: Option<String>,
    /// Proxy mode; only nftables is supported
    #[arg(long, value_name = "MODE", default_value = "nftables", value_parser = ["", "nftables"])]
    proxy_mode: String,
    /// Address ranges of pods; traffic from them is not masqueraded
    #[arg(long, value_name = "RANGES", value_delimiter = ',')]
    cluster_cidr: Vec<IpNet>,
    /// How traffic from pods of this node is detected
    #[arg(long, value_name = "MODE", default_value = "ClusterCIDR", value_parser = ["ClusterCIDR", "NodeCIDR", "BridgeInterface", "InterfaceNamePrefix"])]
    detect_local_mode: String,
    /// Name of the bridge, for --detect-local-mode=BridgeInterface
    #[arg(long, value_name = "NAME", default_value = "", value_parser = interface)]
    pod_bridge_interface: String,
    /// Prefix of interface names, for --detect-local-mode=InterfaceNamePrefix
    #[arg(long, value_name = "PREFIX", default_value = "", value_parser = interface)]
    pod_interface_name_prefix: String,
    /// Address ranges on which NodePorts are served [default: addresses of the Node object]
    #[arg(long, value_name = "RANGES", value_delimiter = ',')]
    nodeport_addresses: Vec<IpNet>,
    /// Masquerade all traffic to cluster IPs
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_value_t = false, default_missing_value = "true", action = ArgAction::Set)]
    masquerade_all: bool,
    /// Address of /healthz and /livez
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "0.0.0.0:10256")]
    healthz_bind_address: SocketAddr,
    /// Exit if the health address is in use
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_value_t = false, default_missing_value = "true", action = ArgAction::Set)]
    bind_address_hard_fail: bool,
    /// Remove all rules and exit
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_value_t = false, default_missing_value = "true", action = ArgAction::Set)]
    cleanup: bool,
    /// Log level: 4 and above logs details, 6 and above everything
    #[arg(long, short, value_name = "LEVEL", default_value_t = 0, action = ArgAction::Set)]
    v: i64,
}

/// Validates an interface name: it is inserted into rules unescaped.
fn interface(text: &str) -> Result<String, String> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@:".contains(&byte);
    let fits = text.len() <= 15 && text.bytes().all(good);
    if fits {
        Ok(text.to_owned())
    } else {
        Err("not a valid interface name".to_owned())
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ProxyError {
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error("cannot read {}: {error}", file.display())]
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

    let ready = || process::announce("kube-proxy is ready\n");
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
