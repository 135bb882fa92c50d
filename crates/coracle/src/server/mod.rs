//! `coracle server`: a cluster in one process: its API server, on the embedded store or an etcd, its controllers and
//! scheduler, and the node on which its pods run.

mod file;
mod kubeconfig;
pub(crate) mod node;
mod place;
mod scheduler;
mod simulated;

use std::convert::Infallible;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Command, ValueEnum};
use coracle_apiserver::access::{Mode, ServiceAccountConfig, TokenConfig};
use coracle_apiserver::admission::Wishes;
use coracle_apiserver::bootstrap::Advertised;
use coracle_apiserver::connect::KubeletConfig;
use coracle_apiserver::storage::Media;
use coracle_apiserver::{Config, Doors, InProcess, RunError, serve};
use coracle_client::{Journal, Tasks};
use coracle_controllers::certificates::signing::{self, Authority, AuthorityError};
use coracle_controllers::manager::UnknownController;
use coracle_controllers::{Manager, Selected, nodelifecycle};
use coracle_store::face::{Face, FaceConfig, FaceError, FaceTls, Listen};
use ipnet::IpNet;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::certificates::{CertificateError, Certificates, Pair};
use crate::controllers;
use crate::host;
use crate::instance::{DEFAULT_DATA_DIR, Instance};
use crate::process::{self, ProcessError};
use crate::running;
use crate::storage::{EmbeddedSettings, EtcdSettings, Storage, StorageError};
use crate::world::WORLD;
pub(crate) use file::FileError;
use place::{Place, PlaceError, Wanted, nth_address};

/// Runs a cluster: today its API server, which keeps objects and tells of their changes, its controllers and scheduler.
///
/// Certificates are made on the first start. DIR/admin.kubeconfig lets kubectl in, DIR/scheduler.kubeconfig a scheduler
/// that runs apart.
#[derive(Args)]
pub(crate) struct Server {
    /// File that says any of this: its keys are these flags without the dashes
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Without a node: no pods run here
    #[arg(long, required = true)]
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
    /// Also show the store as an etcd, for etcdctl: unix:///PATH, or HOST:PORT with the cluster's own certificates
    /// (DIR/pki: ca.crt, and admin.crt with admin.key for the client)
    #[arg(long, value_name = "ADDRESS", value_parser = etcd_address)]
    etcd_listen: Option<Listen>,
    /// Leave these out: scheduler
    #[arg(long, value_name = "COMPONENTS", value_delimiter = ',')]
    disable: Vec<Component>,
    /// Controllers that run: '*' is all that run by default, 'name' adds one, '-name' takes one away
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "*", allow_hyphen_values = true)]
    controllers: Vec<String>,
    #[command(flatten)]
    nodes: NodeFlags,
    #[command(flatten)]
    etcd: EtcdFlags,
}

/// How nodes are watched over, and nodes that are not there.
#[derive(Args)]
struct NodeFlags {
    /// Have so many nodes that exist in the API alone: pods that are scheduled on them seem to run. What becomes of a pod
    /// says its annotation coracle.local/simulate, or that label of its node: run, succeed, fail or hang
    /// (docs/simulated-nodes.md)
    #[arg(long, value_name = "COUNT", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=10_000))]
    simulated_nodes: u16,
    /// How long a node may be silent before it counts as dead
    #[arg(long, value_name = "DURATION", default_value = "50s", value_parser = duration)]
    node_monitor_grace_period: Duration,
    /// How many dead nodes of a zone lose their pods in a second
    #[arg(long, value_name = "NUMBER", default_value_t = 0.1)]
    node_eviction_rate: f64,
}

/// The addresses of a cluster, and its node.
#[derive(Args)]
struct NetworkFlags {
    /// Addresses of pods [default: 10.244.0.0/16, or the next that is free here]
    #[arg(long, value_name = "RANGE")]
    cluster_cidr: Option<IpNet>,
    /// Addresses of Services [default: 10.96.0.0/12, or the next that is free here]
    #[arg(long, value_name = "RANGE")]
    service_cidr: Option<IpNet>,
    /// What names of the cluster end with
    #[arg(long, value_name = "DOMAIN", default_value = "cluster.local")]
    cluster_domain: String,
    /// What the node is called [default: the host's name]
    #[arg(long, value_name = "NAME", conflicts_with = "no_node")]
    node_name: Option<String>,
    /// Port of the kubelet; 0: a free one [default: what it had before, 10250, or a free one]
    #[arg(long, value_name = "PORT", conflicts_with = "no_node")]
    kubelet_port: Option<u16>,
}

/// What a cluster has beside its API server.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Component {
    Scheduler,
}

/// Where objects are kept, unless in the folder.
#[derive(Args)]
struct EtcdFlags {
    /// Keep objects in this etcd instead of the folder: the client URLs of its members, separated by commas
    #[arg(long, value_name = "URLS", value_delimiter = ',', conflicts_with = "etcd_listen")]
    etcd_servers: Vec<String>,
    /// Who signed the certificates of the etcd
    #[arg(long, value_name = "FILE", requires = "etcd_servers")]
    etcd_cafile: Option<PathBuf>,
    /// The certificate that the etcd knows this server by
    #[arg(long, value_name = "FILE", requires = "etcd_keyfile")]
    etcd_certfile: Option<PathBuf>,
    /// The key of --etcd-certfile
    #[arg(long, value_name = "FILE", requires = "etcd_certfile")]
    etcd_keyfile: Option<PathBuf>,
    /// What keys in the etcd begin with
    #[arg(long, value_name = "PREFIX", default_value = "/registry")]
    etcd_prefix: String,
    /// How often the past of the etcd is forgotten; 0: never by this server
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    etcd_compaction_interval: u64,
    /// Let renewals of node leases wait up to so many milliseconds, so that many of them share one flush of the disk,
    /// which spares flash. They are answered once they are durable, only later: a power cut loses no write that was
    /// acknowledged. At most 5000; 0: off. Embedded store only
    #[arg(long, value_name = "MILLISECONDS", default_value = "0", value_parser = milliseconds, conflicts_with = "etcd_servers")]
    node_lease_write_delay: Duration,
}

fn duration(text: &str) -> Result<Duration, String> {
    let parsed = coracle_api::time::parse_duration(text).map_err(|error| error.to_string())?;
    parsed.to_std().ok_or_else(|| "must not be negative".to_string())
}

fn milliseconds(text: &str) -> Result<Duration, std::num::ParseIntError> {
    text.parse().map(Duration::from_millis)
}

impl EtcdFlags {
    fn storage(&self, data_dir: &Path) -> Storage {
        if self.etcd_servers.is_empty() {
            let node_lease_delay = Some(self.node_lease_write_delay).filter(|delay| !delay.is_zero());
            return Storage::Embedded(EmbeddedSettings {
                data_dir: data_dir.to_path_buf(),
                node_lease_delay,
            });
        }
        Storage::Etcd(EtcdSettings {
            servers: self.etcd_servers.clone(),
            authority: self.etcd_cafile.clone(),
            identity: self.etcd_certfile.clone().zip(self.etcd_keyfile.clone()),
            prefix: self.etcd_prefix.clone(),
            media: Media::Protobuf,
            compaction: Some(Duration::from_secs(self.etcd_compaction_interval))
                .filter(|every| !every.is_zero()),
        })
    }
}

fn etcd_address(text: &str) -> Result<Listen, String> {
    match text.strip_prefix("unix://") {
        Some(path) if path.starts_with('/') => Ok(Listen::Unix(PathBuf::from(path))),
        Some(path) => Err(format!("{path:?} is not an absolute path")),
        None => {
            text.parse().map(Listen::Tcp).map_err(|_| "expected unix:///PATH or ADDRESS:PORT".to_string())
        }
    }
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
    Bind { address: SocketAddr, error: io::Error },
    #[error("the store cannot be shown as an etcd")]
    Face(#[from] FaceError),
    #[error("{}: a server runs here already", .0.display())]
    RunsAlready(PathBuf),
    #[error(transparent)]
    Place(#[from] PlaceError),
    #[error("--controllers: {0}")]
    Controllers(#[from] UnknownController),
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    #[error(transparent)]
    Run(#[from] RunError),
}

/// The command line with what the configuration file adds that it names.
pub(crate) fn expand(arguments: Vec<OsString>) -> Result<Vec<OsString>, FileError> {
    file::expand(arguments, &Server::augment_args(Command::new("server")))
}

pub(crate) fn run(command: &Server) -> Result<(), ServerError> {
    process::log(0);
    process::block_on(serve(command))?
}

async fn serve(command: &Server) -> Result<(), ServerError> {
    let folder = &command.data_dir;
    let unusable = |error| ProcessError::DataDir { folder: folder.clone(), error };
    fs::create_dir_all(folder).map_err(unusable)?;
    let instance = Instance::of(folder).map_err(unusable)?;
    let _running = running::begin(&instance.data_dir)
        .map_err(unusable)?
        .ok_or_else(|| ServerError::RunsAlready(instance.data_dir.clone()))?;
    let place = command.place(&instance)?;
    let storage = command.etcd.storage(folder);
    let opened = storage.open()?;
    let listener = command.listen(place.https_port).await?;
    let address = listener.local_addr().map_err(|error| command.unbound(place.https_port, error))?;
    let place = Place { https_port: address.port(), ..place };
    place::remember(&instance, &place)?;

    let pki = Certificates::new(folder);
    let authority = pki.authority()?;
    let reachable = reachable_address(address.ip(), &place);
    let advertised = SocketAddr::new(reachable, address.port());
    let own = [address.ip(), IpAddr::V4(Ipv4Addr::LOCALHOST), reachable];
    let addresses: Vec<IpAddr> = own.into_iter().chain(nth_address(&place.service_cidr, 1)).collect();
    let server = pki.server(&authority, &addresses)?;
    let kubeconfig = kubeconfig::write(folder, local_address(address), &pki, &authority)?;

    let shown = command.etcd_listen.as_ref().zip(opened.embedded.as_ref());
    let show = |(listen, store): (&Listen, &_)| {
        Face::show(Arc::clone(store), face_config(listen, &server, &authority))
    };
    let face = shown.map(show).transpose()?;
    let journal = Journal::new();
    let config = command.config(&pki, &storage, advertised, place.service_cidr, journal.clone())?;
    let ready = || process::announce(&readiness(local_address(address), &kubeconfig, face.as_ref()));
    let (door, tasks) = begin_controllers(command.manager(&authority)?, storage.is_shared(), &journal);
    let schedules = !command.disable.contains(&Component::Scheduler);
    let scheduler = schedules.then(|| scheduler::begin(&door, journal.clone()));
    let renew_every = simulated::renew_every(command.nodes.node_monitor_grace_period);
    simulated::begin(&door, command.nodes.simulated_nodes.into(), renew_every, journal, &tasks);
    let result = process::until_signalled(async |stop| {
        let doors = Doors { listener: Some(listener), in_process: door };
        let served = coracle_apiserver::run(&config, doors, opened.store.clone(), WORLD, stop.clone(), ready);
        tokio::select! {
            biased;
            result = served => result,
            // What began last ends first: nobody asks a server that is about to end.
            never = end(stop, &tasks) => match never {},
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
    Ok(result??)
}

impl Server {
    /// The controllers of this cluster, which makes its own certificates.
    fn manager(&self, authority: &Pair) -> Result<Manager, ServerError> {
        let selected = Selected::parse(&self.controllers)?;
        let node_lifecycle = nodelifecycle::Config {
            monitor_grace: self.nodes.node_monitor_grace_period,
            eviction_rate: self.nodes.node_eviction_rate,
            ..nodelifecycle::Config::default()
        };
        let root_ca = Some(authority.certificate.as_str().into());
        let signer = Authority::from_pem(authority.certificate.as_bytes(), authority.key.as_bytes())?;
        let signing = signing::Config::with(&signer);
        Ok(Manager { selected, node_lifecycle, root_ca, signing, ..Manager::default() })
    }

    /// The ranges and ports of this cluster. Without a node they are in nobody's way.
    fn place(&self, instance: &Instance) -> Result<Place, PlaceError> {
        let wanted = Wanted {
            cluster_cidr: self.network.cluster_cidr,
            service_cidr: self.network.service_cidr,
            https_port: self.https_port,
            kubelet_port: self.network.kubelet_port,
        };
        let held = if self.no_node { Vec::new() } else { place::held_by_others(instance) };
        place::decide(&wanted, place::remembered(instance)?.as_ref(), &held)
    }

    /// Listens on the port, or on a free one where nobody has asked for that port.
    async fn listen(&self, port: u16) -> Result<TcpListener, ServerError> {
        let default = if self.no_node { Ipv4Addr::LOCALHOST } else { Ipv4Addr::UNSPECIFIED };
        let ip = self.bind_address.unwrap_or(IpAddr::V4(default));
        match serve::bind(SocketAddr::new(ip, port)).await {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && self.https_port.is_none() => {
                tracing::info!(port, "somebody else has this port: another one is taken");
                serve::bind(SocketAddr::new(ip, 0)).await.map_err(|error| self.unbound(0, error))
            }
            listener => listener.map_err(|error| self.unbound(port, error)),
        }
    }

    fn unbound(&self, port: u16, error: io::Error) -> ServerError {
        let ip = self.bind_address.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        ServerError::Bind { address: SocketAddr::new(ip, port), error }
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
            tokens: tokens(pki.service_account_key()?, &self.network.cluster_domain, reachable),
            authorization: vec![Mode::Node, Mode::Rbac],
            anonymous: true,
            shared_store: storage.is_shared(),
            compaction: storage.compaction(),
            admission: Wishes { enable: vec!["NodeRestriction".to_string()], ..Wishes::default() },
            allow_privileged: true,
            request_timeout: Duration::from_secs(60),
            min_request_timeout: Duration::from_secs(1800),
            shutdown_delay: Duration::ZERO,
            advertised: advertised(reachable, services),
            kubelets: kubelets(pki)?,
            journal,
        })
    }
}

/// How the API server reaches kubelets: by address, and both sides show certificates of the cluster's.
fn kubelets(pki: &Certificates) -> Result<KubeletConfig, CertificateError> {
    pki.kubelet_client(&pki.authority()?)?;
    let client = pki.files("apiserver-kubelet-client");
    Ok(KubeletConfig {
        certificate_authority: Some(pki.files("ca").certificate),
        client_certificate: Some((client.certificate, client.key)),
        preferred_address_types: ["InternalIP", "ExternalIP", "Hostname"].map(str::to_owned).to_vec(),
        ..KubeletConfig::default()
    })
}

/// Where pods and other machines find what listens on `bind`. A host that leads nowhere still has the bridge of its
/// pods, whose address is the first of theirs.
fn reachable_address(bind: IpAddr, place: &Place) -> IpAddr {
    let reachable = host::reachable_address(bind);
    let bridge =
        nth_address(&place.cluster_cidr, 1).filter(|_| reachable.is_loopback() && bind.is_unspecified());
    bridge.unwrap_or(reachable)
}

/// Where programs of this machine find it.
fn local_address(address: SocketAddr) -> SocketAddr {
    let local =
        if address.is_ipv6() { IpAddr::V6(Ipv6Addr::LOCALHOST) } else { IpAddr::V4(Ipv4Addr::LOCALHOST) };
    SocketAddr::new(if address.ip().is_unspecified() { local } else { address.ip() }, address.port())
}

/// Where pods and clients find this server.
fn advertised(at: SocketAddr, services: IpNet) -> Advertised {
    Advertised { address: at.ip(), port: at.port(), service_cidrs: vec![services], node_port: 0 }
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

/// Begins the controllers in this process; what they ask waits until the server has opened the door. Where the store is
/// shared they are elected: a store of its own has one server, and its lock is the election.
fn begin_controllers(manager: Manager, elect: bool, journal: &Journal) -> (InProcess, Tasks) {
    let (door, tasks) = (InProcess::default(), Tasks::new());
    let (through, journal) = (door.clone(), journal.clone());
    tasks.spawn(async move { controllers::run(&through, &manager, elect, &journal).await });
    (door, tasks)
}

/// Ends the controllers when the process is told to end, and never returns: the server does.
async fn end(mut stop: watch::Receiver<bool>, tasks: &Tasks) -> Infallible {
    drop(stop.wait_for(|stop| *stop).await);
    tasks.stop().await;
    std::future::pending().await
}

/// What it says when it is ready.
fn readiness(address: SocketAddr, kubeconfig: &Path, face: Option<&Face>) -> String {
    let mut lines = format!(
        "coracle is ready at https://{address}\n  kubectl --kubeconfig {} get namespaces\n",
        kubeconfig.display()
    );
    if let Some(face) = face {
        lines.push_str(&format!("  etcdctl --endpoints {}\n", face.url()));
    }
    lines
}

/// A socket is its owner's; on a port, clients show a certificate of this cluster.
fn face_config(listen: &Listen, server: &Pair, authority: &Pair) -> FaceConfig {
    let mut config = FaceConfig::new(listen.clone());
    if matches!(listen, Listen::Tcp(_)) {
        config.tls = Some(FaceTls {
            certificate: server.certificate.clone().into_bytes(),
            key: server.key.clone().into_bytes(),
            clients: Some(authority.certificate.clone().into_bytes()),
        });
    }
    config
}
