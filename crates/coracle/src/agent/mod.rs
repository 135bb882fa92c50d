//! `coracle agent`: a node of a cluster whose servers are other machines.
//!
//! The first start joins ([`join`]); what was learnt then is kept ([`known`]), so that later starts
//! need neither the token nor a server that answers. The node finds further servers by itself
//! ([`servers`]) and goes to another one when its own cannot be reached.

mod join;
mod known;
mod program;
mod servers;

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use coracle_client::config::{Credentials, Pem};
use coracle_client::transport::{Balanced, Servers};
use coracle_client::{Client, Config, ConfigError, Journal, Tasks};
use coracle_kubelet::certificates::{
    CertificateStore, Names, Purpose, Rotation, bootstrap::all_hold,
};
use coracle_runtime::OpenFiles;
use coracle_serving::Flag;
use coracle_settings::{Mistakes, Part};
use ring::digest::{SHA256, digest};
use tokio::sync::watch;

use crate::instance::Instance;
use crate::kubelet;
use crate::process::{self, ProcessError};
use crate::resolv_conf;
use crate::running;
use crate::server::addresses::reachable_addresses;
use crate::server::cluster_network::{self, ClusterNetwork, ClusterNetworkError};
use crate::server::node::{self, Dns, Node, NodeError};
use crate::server::oom;
use crate::settings::{self, Arguments, Gates, Logs, NodeOptions};
use crate::token::{BadToken, JoinToken};
use crate::world::WORLD;
use join::{JoinError, SERVER_NAME};
use known::{Known, KnownError};
use program::PROGRAM;

/// What the settings set.
#[derive(Default)]
pub(crate) struct Agent {
    config: Option<PathBuf>,
    data_dir: PathBuf,
    server: Option<String>,
    token: Option<String>,
    token_file: Option<PathBuf>,
    disable: Vec<String>,
    node: NodeOptions,
    logs: Logs,
    feature_gates: Gates,
    /// All flags with their values, for `/flagz` of the components.
    flags: Vec<Flag>,
}

impl Part<NodeOptions> for Agent {
    fn part(&mut self) -> &mut NodeOptions {
        &mut self.node
    }
}

impl Part<Gates> for Agent {
    fn part(&mut self) -> &mut Gates {
        &mut self.feature_gates
    }
}

impl Part<Logs> for Agent {
    fn part(&mut self) -> &mut Logs {
        &mut self.logs
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum AgentError {
    #[error(transparent)]
    Settings(#[from] Mistakes),
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error("a node needs root")]
    NotRoot,
    #[error("{}: {error}", path.display())]
    File { path: PathBuf, error: io::Error },
    #[error("{}: another agent or server is running with this data directory; stop it or use another --data-dir", .0.display())]
    RunsAlready(PathBuf),
    #[error("{}: this is the data directory of a server, not of an agent", .0.display())]
    OfServer(PathBuf),
    #[error("the hostname is not a valid node name: {0}; set --node-name")]
    HostName(String),
    #[error(
        "this machine has not joined a cluster yet: set --server and --token; `coracle token create` makes a token"
    )]
    NotJoined,
    #[error(
        "this machine is node {known} of its cluster, not {wanted}; run `coracle reset` to join with another name"
    )]
    OtherName { known: String, wanted: String },
    #[error("--token")]
    Token(#[from] BadToken),
    #[error("cannot join the cluster")]
    Join(#[from] JoinError),
    #[error(transparent)]
    Known(#[from] KnownError),
    #[error("cannot configure the API client")]
    Client(#[from] ConfigError),
    #[error(transparent)]
    ClusterNetwork(#[from] ClusterNetworkError),
    #[error("cannot start the node")]
    Node(#[from] NodeError),
}

#[cfg(test)]
pub(crate) fn declared() -> settings::declared::Declared {
    settings::declared::Declared::of(&PROGRAM)
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), AgentError> {
    let Some(mut agent) = settings::read(&PROGRAM, arguments)? else {
        return Ok(());
    };
    agent.flags = PROGRAM.flags(&mut agent);
    agent.check()?;
    agent.feature_gates.set()?;
    if !rustix::process::geteuid().is_root() {
        return Err(AgentError::NotRoot);
    }

    oom::lower_own_score();
    let open_files = process::open_files();
    process::block_on(async {
        process::until_signalled(|stop| async move { lead(&agent, open_files, stop).await }).await
    })??
}

/// Runs the node until the stop signal.
async fn lead(
    agent: &Agent,
    open_files: OpenFiles,
    mut stop: watch::Receiver<bool>,
) -> Result<(), AgentError> {
    let instance = claim(&agent.data_dir)?;
    let name = agent.node.node_name().map_err(AgentError::HostName)?;
    let known = tokio::select! {
        biased;
        known = agent.known(&instance, &name) => known?,
        _ = stop.wait_for(|stop| *stop) => return Ok(()),
    };

    let tasks = Tasks::new();
    let client = client(&instance, &known, &tasks).await?;
    let settings = agent.settings(&instance, &known, &client, open_files, &tasks)?;
    let node = Node::begin(settings).await?;

    tokio::select! {
        () = node::until_ready(client, &name) => {
            process::announce(&format!("coracle agent is ready: node {name}\n"));
            process::notify_ready();
        }
        _ = stop.wait_for(|stop| *stop) => {}
    }

    // An error means that the sender is gone, which counts as a stop too.
    drop(stop.wait_for(|stop| *stop).await);
    node.stop().await;
    tasks.stop().await;
    process::announce("pods keep running; stop them with `coracle stop`\n");
    Ok(())
}

/// Creates the data directory, and takes it for this process.
fn claim(folder: &Path) -> Result<Instance, AgentError> {
    let fail = |error| AgentError::File {
        path: folder.to_owned(),
        error,
    };
    process::make_data_dir(folder).map_err(fail)?;
    let instance = Instance::of(folder).map_err(fail)?;
    if known::pki(&instance).join("ca.key").exists() {
        return Err(AgentError::OfServer(instance.data_dir));
    }

    running::begin(&instance.data_dir)
        .map_err(fail)?
        .ok_or_else(|| AgentError::RunsAlready(instance.data_dir.clone()))?
        .keep();
    instance.make_run_dir().map_err(fail)?;
    Ok(instance)
}

/// The client of the node, which keeps its certificate current and finds the servers.
async fn client(instance: &Instance, known: &Known, tasks: &Tasks) -> Result<Client, AgentError> {
    let store = CertificateStore::client(&known::pki(instance));
    let current = Pem::File(store.current_path());
    let config = Config {
        server: format!("https://{SERVER_NAME}"),
        server_name: Some(SERVER_NAME.to_owned()),
        authorities: Some(Pem::File(known::authority(instance))),
        credentials: Credentials {
            certificate: Some((current.clone(), current)),
            ..Credentials::default()
        },
        ..Config::default()
    };

    // Nodes spread over the servers by their names.
    let hash = digest(&SHA256, known.node_name.as_bytes());
    let preferred = usize::from(hash.as_ref()[0]);
    let servers = Servers::new(known.servers.clone(), preferred);
    let transport = Balanced::new(config, servers.clone(), WORLD).await?;
    let client = Client::new(Arc::new(transport), WORLD)
        .named("kubelet")
        .host(SERVER_NAME);

    let rotation = Rotation {
        client: client.clone(),
        node: known.node_name.clone(),
        purpose: Purpose::Client,
        store,
        presented: None,
    };
    tasks.spawn(rotation.keep());
    tasks.spawn(servers::follow(
        client.clone(),
        servers,
        instance.clone(),
        known.clone(),
        tasks.clone(),
    ));
    Ok(client)
}

impl Agent {
    /// What the node knows of its cluster; joins it if that is not known yet, or if the certificate
    /// of the node has expired and there is a token.
    async fn known(&self, instance: &Instance, name: &str) -> Result<Known, AgentError> {
        let store = CertificateStore::client(&known::pki(instance));
        let has_certificate = store
            .current()
            .is_some_and(|pem| all_hold(&pem, WORLD.now()));
        if let Some(known) = Known::read(instance)?
            && (has_certificate || self.server.is_none())
        {
            return match known.node_name == name {
                true => Ok(known),
                false => Err(AgentError::OtherName {
                    known: known.node_name,
                    wanted: name.to_owned(),
                }),
            };
        }

        let (Some(server), Some(token)) = (&self.server, self.token()?) else {
            return Err(AgentError::NotJoined);
        };
        let token = JoinToken::parse(&token)?;
        let known = join::join(instance, server, &token, name).await?;
        process::announce(&format!("joined the cluster at {server} as node {name}\n"));
        Ok(known)
    }

    fn token(&self) -> Result<Option<String>, AgentError> {
        match &self.token_file {
            None => Ok(self.token.clone()),
            Some(path) => fs::read_to_string(path)
                .map(Some)
                .map_err(|error| AgentError::File {
                    path: path.clone(),
                    error,
                }),
        }
    }

    fn settings(
        &self,
        instance: &Instance,
        known: &Known,
        client: &Client,
        open_files: OpenFiles,
        tasks: &Tasks,
    ) -> Result<node::Settings, AgentError> {
        let cluster_network = ClusterNetwork {
            cluster_cidr: known.cluster_cidr.clone(),
            service_cidr: known.service_cidr.clone(),
            https_port: 0,
            kubelet_port: self.node.kubelet_port.unwrap_or(10250),
            cni: self.node.cni.plugins(),
        };
        cluster_network::save(instance, &cluster_network)?;
        cluster_network::publish(instance, &cluster_network)?;

        let addresses = match self.node.addresses.as_slice() {
            [] => reachable_addresses(IpAddr::V4(Ipv4Addr::UNSPECIFIED), &cluster_network),
            given => given.to_vec(),
        };
        let served = addresses.iter().chain(&self.node.external_addresses);
        let names = Names {
            dns: vec![known.node_name.clone()],
            addresses: served.copied().collect(),
        };
        let folder = known::pki(instance);
        let authority = known::authority(instance);
        let authority = fs::read_to_string(&authority).map_err(|error| AgentError::File {
            path: authority,
            error,
        })?;

        let runs = |name: &str| !self.disable.iter().any(|component| component == name);
        Ok(node::Settings {
            flags: self.flags.clone(),
            instance: instance.clone(),
            certificate: kubelet::requested(&known.node_name, names, &folder, client, tasks),
            name: known.node_name.clone(),
            addresses,
            external_addresses: self.node.external_addresses.clone(),
            labels: self.node.labels.clone(),
            taints: self.node.taints(),
            cluster_network,
            domain: known.cluster_domain.clone(),
            cluster_dns: known.cluster_dns.clone(),
            resolv_conf: resolv_conf::choose(self.node.resolv_conf.as_deref()),
            journal: Journal::new(),
            authority,
            kubelet_port: self.node.kubelet_port,
            open_files: Some(open_files),
            pod_pids: self.node.pods.pids(),
            unsafe_sysctls: self.node.pods.allowed_unsafe_sysctls.clone(),
            images: self.node.images.settings().map_err(Mistakes)?,
            registries: self.node.images.registries().map_err(NodeError::Proxy)?,
            client: client.clone(),
            encapsulation: self.node.encapsulation(),
            network: runs("network").then(|| client.clone().named("network")),
            proxy: runs("proxy").then(|| client.clone().named("kube-proxy")),
            dns: Dns::Image,
        })
    }
}
