//! `coracle server`: a cluster in one process: API server on the embedded store or an etcd,
//! controllers, scheduler, and a node that runs pods.

pub(crate) mod addresses;
mod apiserver;
pub(crate) mod cluster_network;
mod controllers;
mod dns;
mod etcd_port;
pub(crate) mod join;
mod kubeconfig;
pub(crate) mod node;
pub(crate) mod oom;
mod options;
pub(crate) mod pod_network;
mod program;
pub(crate) mod ranges;
mod scheduler;
mod simulated;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use coracle_apiserver::{InProcess, Listeners, RunError};
use coracle_client::{Journal, Tasks};
use coracle_controllers::certificates::signing::AuthorityError;
use coracle_controllers::manager::UnknownController;
use coracle_controllers::nodeipam;
use coracle_runtime::OpenFiles;
use coracle_serving::{Flag, certificate};
use coracle_settings::{Mistakes, Pairs, Part};
use coracle_store::etcd_server::{EtcdServer, EtcdServerError};
use tokio::sync::watch;
use tracing::info;

use crate::certificates::{CertificateError, Certificates, Pair};
use crate::controllers::SigningKeyError;
use crate::instance::{DEFAULT_DATA_DIR, Instance};
use crate::process::{self, ProcessError};
use crate::resolv_conf;
use crate::running;
use crate::settings::{self, Arguments, Gates, Logs, NodeOptions};
use crate::storage::StorageError;
use crate::world::WORLD;
use addresses::{certificate_addresses, local_address, reachable_addresses};
use cluster_network::{ClusterNetwork, ClusterNetworkError, Requested};
use etcd_port::{EtcdPortError, EtcdPortFlags};
use node::{Dns, Node, NodeError};
use options::{AccessFlags, Component, EtcdFlags, NetworkFlags, NodeFlags};
use program::PROGRAM;

/// What the settings set.
#[derive(Default)]
pub(crate) struct Server {
    config: Option<PathBuf>,
    no_node: bool,
    data_dir: PathBuf,
    bind_address: Option<IpAddr>,
    https_port: Option<u16>,
    network: NetworkFlags,
    node: NodeOptions,
    access: AccessFlags,
    etcd_port: EtcdPortFlags,
    disable: Vec<Component>,
    controllers: Vec<String>,
    nodes: NodeFlags,
    etcd: EtcdFlags,
    logs: Logs,
    feature_gates: Gates,
    runtime_config: Pairs,
    /// All flags with their values, for `/flagz` of the components.
    flags: Vec<Flag>,
}

impl Part<NodeOptions> for Server {
    fn part(&mut self) -> &mut NodeOptions {
        &mut self.node
    }
}

impl Part<Gates> for Server {
    fn part(&mut self) -> &mut Gates {
        &mut self.feature_gates
    }
}

impl Part<Pairs> for Server {
    fn part(&mut self) -> &mut Pairs {
        &mut self.runtime_config
    }
}

impl Part<Logs> for Server {
    fn part(&mut self) -> &mut Logs {
        &mut self.logs
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ServerError {
    #[error(transparent)]
    Settings(#[from] Mistakes),
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    #[error("cannot listen on {address}: {error}")]
    Bind {
        address: SocketAddr,
        error: io::Error,
    },
    #[error("the hostname is not a valid node name: {0}; set --node-name")]
    HostName(String),
    #[error("cannot serve the etcd API of the store")]
    EtcdServer(#[from] EtcdServerError),
    #[error(transparent)]
    EtcdPort(#[from] EtcdPortError),
    #[error("{}: another server is running with this data directory; stop it or use another --data-dir", .0.display())]
    RunsAlready(PathBuf),
    #[error(transparent)]
    ClusterNetwork(#[from] ClusterNetworkError),
    #[error(transparent)]
    Node(#[from] NodeError),
    #[error(transparent)]
    NodeRanges(#[from] nodeipam::ConfigError),
    #[error("--controllers")]
    Controllers(#[from] UnknownController),
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    #[error("{}: {error}", file.display())]
    SigningKey {
        file: PathBuf,
        error: SigningKeyError,
    },
    #[error(transparent)]
    Run(#[from] RunError),
}

#[cfg(test)]
pub(crate) fn declared() -> settings::declared::Declared {
    settings::declared::Declared::of(&PROGRAM)
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), ServerError> {
    let Some(mut server) = settings::read(&PROGRAM, arguments)? else {
        return Ok(());
    };
    server.flags = PROGRAM.flags(&mut server);
    server.check()?;
    server.feature_gates.set()?;

    if !server.no_node {
        oom::lower_own_score();
    }
    let open_files = process::open_files();
    process::block_on(serve(&server, open_files))?
}

/// Creates the data directory, and takes it for this process.
fn claim(folder: &Path) -> Result<Instance, ServerError> {
    let unusable = |error| ProcessError::DataDir {
        folder: folder.to_path_buf(),
        error,
    };
    process::make_data_dir(folder).map_err(unusable)?;

    let instance = Instance::of(folder).map_err(unusable)?;
    running::begin(&instance.data_dir)
        .map_err(unusable)?
        .ok_or_else(|| ServerError::RunsAlready(instance.data_dir.clone()))?
        .keep();

    Ok(instance)
}

/// Runs the server. `open_files` is the limit that this process was started with; containers get
/// it.
async fn serve(command: &Server, open_files: OpenFiles) -> Result<(), ServerError> {
    if !command.no_node {
        command.node_name()?;
    }

    let folder = &command.data_dir;
    let instance = claim(folder)?;
    let cluster_network = command.cluster_network(&instance)?;
    let storage = command.etcd.storage(folder);
    let opened = storage.open()?;

    let listener = command.listen(&cluster_network)?;
    let address = listener
        .local_addr()
        .map_err(|error| command.unbound(cluster_network.https_port, error))?;
    let cluster_network = ClusterNetwork {
        https_port: address.port(),
        ..cluster_network
    };
    cluster_network::save(&instance, &cluster_network)?;

    let pki = Certificates::new(folder, opened.holds_cluster());
    let authority = pki.authority()?;
    let reachable = command.reachable(address.ip(), &cluster_network);
    let advertised = SocketAddr::new(reachable[0], address.port());

    let addresses = certificate_addresses(address.ip(), &reachable, &cluster_network);
    let server = pki.server(&authority, &addresses, &command.access.names)?;

    let local = local_address(address);
    kubeconfig::write(folder, local, &pki, &authority)?;
    kubeconfig::copy(folder, &command.access)?;

    let shown = command
        .etcd_port
        .config(&server, &authority)?
        .zip(opened.embedded.as_ref());

    let etcd_server = shown
        .map(|(config, store)| EtcdServer::start(Arc::clone(store), config))
        .transpose()?;

    let journal = Journal::new();
    let config = command.apiserver_config(
        &pki,
        &storage,
        advertised,
        cluster_network.service_cidr.all(),
        journal.clone(),
    )?;

    let lines = readiness(local, &command.kubectl(), etcd_server.as_ref());
    let ready = || {
        if command.no_node {
            process::announce(&lines);
        } else {
            info!(%address, "API server ready; starting the node");
        }
    };

    let manager = command.manager(&pki, &authority, &cluster_network)?;
    let (in_process, tasks) = controllers::begin(
        manager,
        storage.is_shared(),
        &journal,
        &authority,
        &command.flags,
    )
    .await;
    let scheduler = scheduler::begin(command, &in_process, &journal, &authority).await;
    simulated::begin(&command.nodes, &in_process, &journal, &tasks);

    command.begin_join(
        &cluster_network,
        advertised,
        &authority,
        &in_process,
        &tasks,
    );
    let node = command.node(
        &instance,
        &cluster_network,
        reachable,
        journal,
        &authority,
        &in_process,
    )?;
    let node = node.map(|settings| node::Settings {
        open_files: Some(open_files),
        ..settings
    });

    let result = process::until_signalled(async |stop| {
        let listeners = Listeners { listener: Some(listener), in_process: in_process.clone() };
        let (last, stop_server) = watch::channel(false);
        let served = coracle_apiserver::run(&config, listeners, opened.store.clone(), WORLD, stop_server, ready);
        tokio::select! {
            biased;
            result = served => result.map_err(ServerError::from),
            // A server with a node does not run without it.
            ended = run_others(node, &in_process, &lines, stop, &tasks, &last) => ended.map_err(ServerError::from),
        }
    })
    .await;

    if let Some(scheduler) = scheduler {
        scheduler.stop().await;
    }

    if let Some(etcd_server) = etcd_server {
        etcd_server.stop().await;
    }

    opened.close().await;

    result?
}

/// Runs the node until the stop signal, then stops everything in reverse order of
/// start: clients stop before the API server. Returns only if the node cannot be started.
async fn run_others(
    node: Option<node::Settings>,
    in_process: &InProcess,
    lines: &str,
    stop: watch::Receiver<bool>,
    tasks: &Tasks,
    last: &watch::Sender<bool>,
) -> Result<(), NodeError> {
    run_node(node, in_process, lines, stop).await?;
    tasks.stop().await;
    last.send_replace(true);
    std::future::pending().await
}

/// Runs the node, if there is one, and prints the ready message. Returns when it was stopped, or an
/// error if it cannot be started.
async fn run_node(
    settings: Option<node::Settings>,
    in_process: &InProcess,
    lines: &str,
    mut stop: watch::Receiver<bool>,
) -> Result<(), NodeError> {
    let Some(settings) = settings else {
        stopped(&mut stop).await;
        return Ok(());
    };
    let name = settings.name.clone();

    let node = Node::begin(settings).await?;
    let client = node::client(in_process, "system:coracle", &["system:masters"], "coracle");
    tokio::select! {
        ((), ()) = async { tokio::join!(node::until_ready(client, &name), node.until_dns_settled()) } => {
            process::announce(lines);
        }
        () = stopped(&mut stop) => {}
    }

    stopped(&mut stop).await;
    node.stop().await;
    process::announce("pods keep running; stop them with `coracle stop`\n");

    Ok(())
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    // An error means that the sender is gone, which counts as a stop too.
    drop(stop.wait_for(|stop| *stop).await);
}

impl Server {
    /// The `kubectl` command to print, as this program was called.
    fn kubectl(&self) -> String {
        let program = std::env::args_os()
            .next()
            .unwrap_or_else(|| "coracle".into());
        let program = program.to_string_lossy();
        match self.data_dir == Path::new(DEFAULT_DATA_DIR) {
            true => format!("{program} kubectl"),
            false => format!("{program} kubectl --data-dir {}", self.data_dir.display()),
        }
    }

    /// Settings of this machine's node; `None` with --no-node.
    fn node(
        &self,
        instance: &Instance,
        cluster_network: &ClusterNetwork,
        addresses: Vec<IpAddr>,
        journal: Journal,
        authority: &Pair,
        in_process: &InProcess,
    ) -> Result<Option<node::Settings>, ServerError> {
        if self.no_node {
            return Ok(None);
        }
        if !rustix::process::geteuid().is_root() {
            return Err(NodeError::NotRoot.into());
        }

        instance.make_run_dir().map_err(NodeError::RunDir)?;
        cluster_network::publish(instance, cluster_network)?;
        let name = self.node_name()?;
        let served = addresses.iter().chain(&self.node.external_addresses);
        let served: Vec<IpAddr> = served
            .copied()
            .chain([IpAddr::V4(Ipv4Addr::LOCALHOST)])
            .collect();
        let pair = Certificates::kubelet(authority, &name, &served)?;
        let certificate = certificate(pair.certificate.as_bytes(), pair.key.as_bytes());

        let client =
            |user: &str, groups: &[&str], agent| node::client(in_process, user, groups, agent);
        let runs = |component| !self.disable.contains(&component);
        Ok(Some(node::Settings {
            flags: self.flags.clone(),
            certificate: certificate.map_err(NodeError::from)?,
            authority: authority.certificate.clone(),
            instance: instance.clone(),
            client: client(&format!("system:node:{name}"), &["system:nodes"], "kubelet"),
            name,
            addresses,
            external_addresses: self.node.external_addresses.clone(),
            labels: self.node.labels.clone(),
            taints: self.node.taints(),
            cluster_network: cluster_network.clone(),
            domain: self.network.cluster_domain.clone(),
            cluster_dns: self.cluster_dns(cluster_network),
            resolv_conf: resolv_conf::choose(self.node.resolv_conf.as_deref()),
            journal,
            kubelet_port: self.node.kubelet_port,
            open_files: None,
            pod_pids: self.node.pods.pids(),
            unsafe_sysctls: self.node.pods.allowed_unsafe_sysctls.clone(),
            images: self.node.images.settings().map_err(Mistakes)?,
            registries: self.node.images.registries().map_err(NodeError::Proxy)?,
            encapsulation: self.node.encapsulation(),
            network: runs(Component::Network).then(|| client("system:kube-proxy", &[], "network")),
            proxy: runs(Component::Proxy).then(|| client("system:kube-proxy", &[], "kube-proxy")),
            dns: match runs(Component::Dns) {
                true => Dns::Cluster(client("system:coracle", &["system:masters"], "coracle")),
                false => Dns::Disabled,
            },
        }))
    }

    /// The addresses at which other machines reach this one: --node-ip, or those that it has.
    fn reachable(&self, bind: IpAddr, cluster_network: &ClusterNetwork) -> Vec<IpAddr> {
        match self.node.addresses.as_slice() {
            [] => reachable_addresses(bind, cluster_network),
            given => given.to_vec(),
        }
    }

    /// Applies what nodes need to join, as soon as the API server is up.
    fn begin_join(
        &self,
        cluster_network: &ClusterNetwork,
        server: SocketAddr,
        authority: &Pair,
        in_process: &InProcess,
        tasks: &Tasks,
    ) {
        let cluster = join::Cluster {
            server,
            authority: authority.certificate.clone(),
            pods: cluster_network.cluster_cidr.clone(),
            services: cluster_network.service_cidr.clone(),
            domain: self.network.cluster_domain.clone(),
            dns: self.cluster_dns(cluster_network),
        };
        let client = node::client(in_process, "system:coracle", &["system:masters"], "coracle");
        tasks.spawn(async move { join::ensure(&client, &cluster).await });
    }

    /// The DNS servers of pods.
    fn cluster_dns(&self, cluster_network: &ClusterNetwork) -> Vec<IpAddr> {
        let own = cluster_network.dns_address();
        let own = own.filter(|_| !self.disable.contains(&Component::Dns));
        match self.network.cluster_dns.as_slice() {
            [] => own.into_iter().collect(),
            given => given.to_vec(),
        }
    }

    /// The name of the node: --node-name, or the hostname.
    fn node_name(&self) -> Result<String, ServerError> {
        self.node.node_name().map_err(ServerError::HostName)
    }

    /// Address ranges and ports of this cluster. Without a node they cannot conflict with others of
    /// the machine.
    fn cluster_network(&self, instance: &Instance) -> Result<ClusterNetwork, ClusterNetworkError> {
        let requested = Requested {
            cluster_cidr: self.network.cluster_cidr.clone(),
            service_cidr: self.network.service_cidr.clone(),
            https_port: self.https_port,
            kubelet_port: self.node.kubelet_port,
            cni: self.node.cni.plugins(),
            // With a real node, ranges of simulated nodes must not overlap the machine's.
            simulated_nodes: if self.no_node {
                self.nodes.simulated_nodes
            } else {
                0
            },
        };

        let in_use = if self.no_node {
            Vec::new()
        } else {
            cluster_network::ranges_in_use(instance)
        };

        cluster_network::decide(
            &requested,
            cluster_network::saved(instance)?.as_ref(),
            &in_use,
        )
    }
}

/// The message that is printed when the server is ready.
fn readiness(address: SocketAddr, kubectl: &str, etcd_server: Option<&EtcdServer>) -> String {
    let mut lines = format!("coracle is ready at https://{address}\n  {kubectl} get all -A\n");
    if let Some(etcd_server) = etcd_server {
        lines.push_str(&format!("  etcdctl --endpoints {}\n", etcd_server.url()));
    }
    lines
}
