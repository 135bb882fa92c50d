//! `coracle server`: a cluster in one process: its API server, on the embedded store or an etcd,
//! its controllers and scheduler, and the node on which its pods run.

mod dns;
mod etcd_port;
mod file;
mod flags;
mod kubeconfig;
pub(crate) mod node;
mod oom;
pub(crate) mod place;
pub(crate) mod pod_network;
mod scheduler;
mod simulated;

use std::ffi::OsString;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Command};
use coracle_apiserver::access::{Mode, ServiceAccountConfig, TokenConfig};
use coracle_apiserver::admission::PluginFlags;
use coracle_apiserver::bootstrap::Advertised;
use coracle_apiserver::connect::KubeletConfig;
use coracle_apiserver::registry::NodePorts;
use coracle_apiserver::{Config, Doors, InProcess, RunError, serve};
use coracle_client::{Journal, Tasks};
use coracle_controllers::certificates::signing::{self, Authority, AuthorityError};
use coracle_controllers::manager::UnknownController;
use coracle_controllers::{Manager, Selected, nodeipam, nodelifecycle};
use coracle_runtime::OpenFiles;
use coracle_store::etcd_server::{EtcdServer, EtcdServerError};
use ipnet::IpNet;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tracing::info;

use crate::certificates::{CertificateError, Certificates, Pair};
use crate::controllers::{self, SigningKeyError};
use crate::host;
use crate::instance::{DEFAULT_DATA_DIR, Instance};
use crate::process::{self, ProcessError};
use crate::running;
use crate::storage::{Storage, StorageError};
use crate::world::WORLD;
use etcd_port::{EtcdPortError, EtcdPortFlags};
pub(crate) use file::FileError;
use flags::{CniFlags, Component, EtcdFlags, NetworkFlags, NodeFlags, PodFlags, subdomain};
use node::{Node, NodeError};
use place::{Place, PlaceError, Wanted, nth_address};

/// Runs a cluster on this machine: API server, controllers, scheduler, and a node that runs pods,
/// with their network, Services and names.
///
/// Certificates are made on the first start. DIR/admin.kubeconfig lets kubectl in,
/// DIR/scheduler.kubeconfig a scheduler that runs apart. Pods go on running when the server ends:
/// `coracle stop` ends them, `coracle reset` removes everything.
#[derive(Args)]
pub(crate) struct Server {
    /// File that says any of this: its keys are these flags without the dashes
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Without a node: no pods run here
    #[arg(long)]
    no_node: bool,
    /// Where everything is kept
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DATA_DIR)]
    data_dir: PathBuf,
    /// Address to listen on [default: all, or 127.0.0.1 without a node]
    #[arg(long, value_name = "ADDRESS")]
    bind_address: Option<IpAddr>,
    /// Port to listen on; 0: a free one [default: what it had before, 6443, or a free one]
    #[arg(long, value_name = "PORT")]
    https_port: Option<u16>,
    #[command(flatten)]
    network: NetworkFlags,
    #[command(flatten)]
    cni: CniFlags,
    #[command(flatten)]
    pods: PodFlags,
    #[command(flatten)]
    etcd_port: EtcdPortFlags,
    /// Leave these out: dns, proxy, scheduler
    #[arg(long, value_name = "COMPONENTS", value_delimiter = ',')]
    disable: Vec<Component>,
    /// Controllers that run: '*' is all that run by default, 'name' adds one, '-name' takes one
    /// away
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "*",
        allow_hyphen_values = true
    )]
    controllers: Vec<String>,
    #[command(flatten)]
    nodes: NodeFlags,
    #[command(flatten)]
    etcd: EtcdFlags,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ServerError {
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    #[error("{address}: cannot be listened on: {error}")]
    Bind {
        address: SocketAddr,
        error: io::Error,
    },
    #[error(
        "the host's name cannot be the name of a node: {0}; give the node another with --node-name"
    )]
    HostName(String),
    #[error("the store cannot be shown as an etcd")]
    EtcdServer(#[from] EtcdServerError),
    #[error(transparent)]
    EtcdPort(#[from] EtcdPortError),
    #[error("{}: a server runs here already", .0.display())]
    RunsAlready(PathBuf),
    #[error(transparent)]
    Place(#[from] PlaceError),
    #[error(transparent)]
    Node(#[from] NodeError),
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

/// The command line with what the configuration file adds that it names.
pub(crate) fn expand(arguments: Vec<OsString>) -> Result<Vec<OsString>, FileError> {
    file::expand(arguments, &Server::augment_args(Command::new("server")))
}

pub(crate) fn run(command: &Server) -> Result<(), ServerError> {
    process::log(0);
    if !command.no_node {
        oom::lower_own_score();
    }
    let open_files = process::open_files();
    process::block_on(serve(command, open_files))?
}

/// Serves; `open_files` is the limit that this process was started with, which containers get.
async fn serve(command: &Server, open_files: OpenFiles) -> Result<(), ServerError> {
    if !command.no_node {
        command.node_name()?;
    }

    let folder = &command.data_dir;
    let unusable = |error| ProcessError::DataDir {
        folder: folder.clone(),
        error,
    };
    process::make_data_dir(folder).map_err(unusable)?;

    let instance = Instance::of(folder).map_err(unusable)?;
    running::begin(&instance.data_dir)
        .map_err(unusable)?
        .ok_or_else(|| ServerError::RunsAlready(instance.data_dir.clone()))?
        .keep();

    let place = command.place(&instance)?;
    let storage = command.etcd.storage(folder);
    let opened = storage.open()?;

    let listener = command.listen(place.https_port).await?;
    let address = listener
        .local_addr()
        .map_err(|error| command.unbound(place.https_port, error))?;
    let place = Place {
        https_port: address.port(),
        ..place
    };
    place::remember(&instance, &place)?;

    let pki = Certificates::new(folder, opened.holds_cluster());
    let authority = pki.authority()?;
    let reachable = reachable_address(address.ip(), &place);
    let advertised = SocketAddr::new(reachable, address.port());

    let own = [address.ip(), IpAddr::V4(Ipv4Addr::LOCALHOST), reachable];
    let addresses: Vec<IpAddr> = own
        .into_iter()
        .chain(nth_address(&place.service_cidr, 1))
        .collect();
    let server = pki.server(&authority, &addresses)?;

    kubeconfig::write(folder, local_address(address), &pki, &authority)?;

    let shown = command
        .etcd_port
        .config(&server, &authority)?
        .zip(opened.embedded.as_ref());

    let face = shown
        .map(|(config, store)| EtcdServer::start(Arc::clone(store), config))
        .transpose()?;

    let journal = Journal::new();
    let config = command.config(
        &pki,
        &storage,
        advertised,
        place.service_cidr,
        journal.clone(),
    )?;

    let lines = readiness(local_address(address), &command.kubectl(), face.as_ref());
    let ready = || {
        if command.no_node {
            process::announce(&lines);
        } else {
            info!(%address, "the API server is ready; the node follows");
        }
    };

    let manager = command.manager(&pki, &authority, &place)?;
    let (door, tasks) = begin_controllers(manager, storage.is_shared(), &journal);
    let schedules = !command.disable.contains(&Component::Scheduler);
    let scheduler = schedules.then(|| scheduler::begin(&door, journal.clone()));

    let renew_every = simulated::renew_every(command.nodes.node_monitor_grace_period);
    simulated::begin(
        &door,
        command.nodes.simulated_nodes.into(),
        renew_every,
        journal.clone(),
        &tasks,
    );

    let node = command.node(&instance, &place, advertised.ip(), journal, &authority)?;
    let node = node.map(|settings| node::Settings {
        open_files: Some(open_files),
        ..settings
    });

    let result = process::until_signalled(async |stop| {
        let doors = Doors { listener: Some(listener), in_process: door.clone() };
        let (last, stop_server) = watch::channel(false);
        let served = coracle_apiserver::run(&config, doors, opened.store.clone(), WORLD, stop_server, ready);
        tokio::select! {
            biased;
            result = served => result.map_err(ServerError::from),
            // Without its node a cluster that is to have one does not start.
            ended = run_others(node, &door, &lines, stop, &tasks, &last) => ended.map_err(ServerError::from),
        }
    })
    .await;

    if let Some(scheduler) = scheduler {
        scheduler.stop().await;
    }

    if let Some(face) = face {
        face.stop().await;
    }

    opened.close().await;

    result?
}

/// Runs the node, and ends all in its order: what began last ends first, as nobody asks a server
/// that is about to end. Returns only when there is no node where there should be one.
async fn run_others(
    node: Option<node::Settings>,
    door: &InProcess,
    lines: &str,
    stop: watch::Receiver<bool>,
    tasks: &Tasks,
    last: &watch::Sender<bool>,
) -> Result<(), NodeError> {
    run_node(node, door, lines, stop).await?;
    tasks.stop().await;
    last.send_replace(true);
    std::future::pending().await
}

/// Runs the node, if there is one, and says when it is ready. Returns when it has been stopped, or
/// cannot be had.
async fn run_node(
    settings: Option<node::Settings>,
    door: &InProcess,
    lines: &str,
    mut stop: watch::Receiver<bool>,
) -> Result<(), NodeError> {
    let Some(settings) = settings else {
        stopped(&mut stop).await;
        return Ok(());
    };
    let name = settings.name.clone();

    let node = Node::begin(settings, door).await?;
    tokio::select! {
        ((), ()) = async { tokio::join!(node::until_ready(door, &name), node.until_named()) } => {
            process::announce(lines);
        }
        () = stopped(&mut stop) => {}
    }

    stopped(&mut stop).await;
    node.stop().await;
    process::announce("pods are left running; `coracle stop` ends them\n");

    Ok(())
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    // Whoever could say so being gone is as good as having said so.
    drop(stop.wait_for(|stop| *stop).await);
}

impl Server {
    /// How whoever has typed this types `kubectl`.
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

    /// What the node of this machine is told, if there is to be one.
    fn node(
        &self,
        instance: &Instance,
        place: &Place,
        address: IpAddr,
        journal: Journal,
        authority: &Pair,
    ) -> Result<Option<node::Settings>, ServerError> {
        if self.no_node {
            return Ok(None);
        }
        if !rustix::process::geteuid().is_root() {
            return Err(NodeError::NotRoot.into());
        }

        instance.make_run_dir().map_err(NodeError::RunDir)?;
        place::show(instance, place)?;
        let name = self.node_name()?;
        let addresses = [address, IpAddr::V4(Ipv4Addr::LOCALHOST)];

        Ok(Some(node::Settings {
            certificate: Certificates::kubelet(authority, &name, &addresses)?,
            authority: authority.certificate.clone(),
            instance: instance.clone(),
            name,
            address,
            place: place.clone(),
            domain: self.network.cluster_domain.clone(),
            journal,
            kubelet_port: self.network.kubelet_port,
            open_files: None,
            pod_pids: self.pods.pids(),
            unsafe_sysctls: self.pods.allowed_unsafe_sysctls.clone(),
            has_proxy: !self.disable.contains(&Component::Proxy),
            has_dns: !self.disable.contains(&Component::Dns),
        }))
    }

    /// What the node is called: what was asked for, or what the host is called.
    fn node_name(&self) -> Result<String, ServerError> {
        match &self.network.node_name {
            Some(name) => Ok(name.clone()),
            None => subdomain(&host::name().to_lowercase()).map_err(ServerError::HostName),
        }
    }

    /// The controllers of a cluster that makes its own certificates.
    fn manager(
        &self,
        pki: &Certificates,
        authority: &Pair,
        place: &Place,
    ) -> Result<Manager, ServerError> {
        let key = pki.service_account_key()?;
        let token_signer = controllers::token_signer(&key)
            .map_err(|error| ServerError::SigningKey { file: key, error })?;

        let node_lifecycle = nodelifecycle::Config {
            monitor_grace: self.nodes.node_monitor_grace_period,
            eviction_rate: self.nodes.node_eviction_rate,
            ..nodelifecycle::Config::default()
        };

        let node_ipam = nodeipam::Config {
            allocate: true,
            cluster_cidrs: vec![place.cluster_cidr],
            service_cidrs: vec![place.service_cidr],
            ..nodeipam::Config::default()
        };

        let root_ca = Some(authority.certificate.as_str().into());
        let signer =
            Authority::from_pem(authority.certificate.as_bytes(), authority.key.as_bytes())?;
        let signing = signing::Config::with(&signer);
        let selected = Selected::parse(&self.controllers)?;

        Ok(Manager {
            selected,
            root_ca,
            token_signer: Some(token_signer),
            node_ipam,
            node_lifecycle,
            signing,
            ..Manager::default()
        })
    }

    /// The ranges and ports of this cluster. Without a node they are in nobody's way.
    fn place(&self, instance: &Instance) -> Result<Place, PlaceError> {
        let wanted = Wanted {
            cluster_cidr: self.network.cluster_cidr,
            service_cidr: self.network.service_cidr,
            https_port: self.https_port,
            kubelet_port: self.network.kubelet_port,
            cni: self.cni.plugins(),
            // Beside a real node they have to leave the machine's addresses alone.
            simulated_nodes: if self.no_node {
                self.nodes.simulated_nodes
            } else {
                0
            },
        };

        let held = if self.no_node {
            Vec::new()
        } else {
            place::held_by_others(instance)
        };

        place::decide(&wanted, place::remembered(instance)?.as_ref(), &held)
    }

    /// Listens on the port, or on a free one where nobody has asked for that port.
    async fn listen(&self, port: u16) -> Result<TcpListener, ServerError> {
        let default = if self.no_node {
            Ipv4Addr::LOCALHOST
        } else {
            Ipv4Addr::UNSPECIFIED
        };

        let ip = self.bind_address.unwrap_or(IpAddr::V4(default));
        match serve::bind(SocketAddr::new(ip, port)).await {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && self.https_port.is_none() => {
                tracing::info!(port, "somebody else has this port: another one is taken");
                serve::bind(SocketAddr::new(ip, 0))
                    .await
                    .map_err(|error| self.unbound(0, error))
            }
            listener => listener.map_err(|error| self.unbound(port, error)),
        }
    }

    fn unbound(&self, port: u16, error: io::Error) -> ServerError {
        let ip = self
            .bind_address
            .unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        ServerError::Bind {
            address: SocketAddr::new(ip, port),
            error,
        }
    }

    /// The API server of this cluster; `reachable` is where others find it.
    fn config(
        &self,
        pki: &Certificates,
        storage: &Storage,
        reachable: SocketAddr,
        services: IpNet,
        journal: Journal,
    ) -> Result<Config, CertificateError> {
        Ok(Config {
            certificate: pki.files("apiserver"),
            tls13_only: false,
            http2: true,
            http2_streams: 100,
            client_authorities: Some(pki.files("ca").certificate),
            front_proxy: None,
            tokens: tokens(
                pki.service_account_key()?,
                &self.network.cluster_domain,
                reachable,
            ),
            authorization: vec![Mode::Node, Mode::Rbac],
            anonymous: true,
            shared_store: storage.is_shared(),
            compaction: storage.compaction(),
            admission: PluginFlags {
                enable: vec!["NodeRestriction".to_string()],
                ..PluginFlags::default()
            },
            allow_privileged: true,
            request_timeout: Duration::from_secs(60),
            bootstrap: true,
            min_request_timeout: Duration::from_secs(1800),
            shutdown_delay: Duration::ZERO,
            event_ttl: self.etcd.event_ttl,
            advertised: advertised(reachable, services),
            node_ports: NodePorts::USUAL,
            kubelets: kubelets(pki)?,
            journal,
        })
    }
}

/// How the API server reaches kubelets: by address, and both sides show certificates of the
/// cluster's.
fn kubelets(pki: &Certificates) -> Result<KubeletConfig, CertificateError> {
    pki.kubelet_client(&pki.authority()?)?;
    let client = pki.files("apiserver-kubelet-client");
    Ok(KubeletConfig {
        certificate_authority: Some(pki.files("ca").certificate),
        client_certificate: Some((client.certificate, client.key)),
        preferred_address_types: ["InternalIP", "ExternalIP", "Hostname"]
            .map(str::to_owned)
            .to_vec(),
        ..KubeletConfig::default()
    })
}

/// Where pods and other machines find what listens on `bind`. A host that leads nowhere still has
/// the bridge of its pods, whose address is the first of theirs.
fn reachable_address(bind: IpAddr, place: &Place) -> IpAddr {
    let reachable = host::reachable_address(bind);
    let bridge = nth_address(&place.cluster_cidr, 1)
        .filter(|_| reachable.is_loopback() && bind.is_unspecified());
    bridge.unwrap_or(reachable)
}

/// Where programs of this machine find it.
fn local_address(address: SocketAddr) -> SocketAddr {
    let local = if address.is_ipv6() {
        IpAddr::V6(Ipv6Addr::LOCALHOST)
    } else {
        IpAddr::V4(Ipv4Addr::LOCALHOST)
    };

    SocketAddr::new(
        if address.ip().is_unspecified() {
            local
        } else {
            address.ip()
        },
        address.port(),
    )
}

/// Where pods and clients find this server.
fn advertised(at: SocketAddr, services: IpNet) -> Advertised {
    Advertised {
        address: at.ip(),
        port: at.port(),
        service_cidrs: vec![services],
        node_port: 0,
    }
}

/// Service accounts get their tokens from this server; `address` is where others find it.
fn tokens(signing_key_file: PathBuf, domain: &str, address: SocketAddr) -> TokenConfig {
    let issuer = format!("https://kubernetes.default.svc.{domain}");
    TokenConfig {
        static_file: None,
        bootstrap: true,
        audiences: vec![issuer.clone()],
        service_accounts: Some(ServiceAccountConfig {
            issuers: vec![issuer],
            signing_key_file,
            key_files: Vec::new(),
            jwks_uri: format!("https://{address}/openid/v1/jwks"),
            extends: true,
            max_seconds: None,
        }),
    }
}

/// Begins the controllers in this process; what they ask waits until the server has opened the
/// door. Where the store is shared they are elected: a store of its own has one server, and its
/// lock is the election.
fn begin_controllers(manager: Manager, elect: bool, journal: &Journal) -> (InProcess, Tasks) {
    let (door, tasks) = (InProcess::default(), Tasks::new());
    let (through, journal) = (door.clone(), journal.clone());
    tasks.spawn(async move { controllers::run(&through, &manager, elect, &journal).await });
    (door, tasks)
}

/// What it says when it is ready.
fn readiness(address: SocketAddr, kubectl: &str, face: Option<&EtcdServer>) -> String {
    let mut lines = format!("coracle is ready at https://{address}\n  {kubectl} get all -A\n");
    if let Some(face) = face {
        lines.push_str(&format!("  etcdctl --endpoints {}\n", face.url()));
    }
    lines
}
