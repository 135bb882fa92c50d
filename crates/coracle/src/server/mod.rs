//! `coracle server`: a cluster in one process. Today that is its API server, on the embedded store or an etcd, its
//! controllers and its scheduler.

mod scheduler;
mod simulated;

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use clap::{Args, ValueEnum};
use coracle_apiserver::access::{Mode, ServiceAccountConfig, TokenConfig};
use coracle_apiserver::admission::Wishes;
use coracle_apiserver::bootstrap::Advertised;
use coracle_apiserver::storage::Media;
use coracle_apiserver::{Config, Doors, InProcess, RunError, serve};
use coracle_client::{Journal, Tasks};
use coracle_controllers::manager::UnknownController;
use coracle_controllers::{Manager, Selected};
use coracle_store::face::{Face, FaceConfig, FaceError, FaceTls, Listen};
use ipnet::IpNet;
use tokio::sync::watch;

use crate::certificates::{self, CertificateError, Certificates, Pair};
use crate::controllers;
use crate::host;
use crate::process::{self, ProcessError};
use crate::storage::{EmbeddedSettings, EtcdSettings, Storage, StorageError};
use crate::world::WORLD;

/// Runs a cluster: today its API server, which keeps objects and tells of their changes, its controllers and scheduler.
///
/// Certificates are made on the first start. DIR/admin.kubeconfig lets kubectl in, DIR/scheduler.kubeconfig a scheduler
/// that runs apart.
#[derive(Args)]
pub(crate) struct Server {
    /// Without a node: no pods run here
    #[arg(long, required = true)]
    no_node: bool,
    /// Where everything is kept
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    bind_address: IpAddr,
    /// Port to listen on; 0: a free one
    #[arg(long, value_name = "PORT", default_value_t = 6443)]
    https_port: u16,
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
    /// Have so many nodes that exist in the API alone: pods that are scheduled on them seem to run. What becomes of a pod
    /// says its annotation coracle.local/simulate, or that label of its node: run, succeed, fail or hang
    /// (docs/simulated-nodes.md)
    #[arg(long, value_name = "COUNT", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=10_000))]
    simulated_nodes: u16,
    #[command(flatten)]
    etcd: EtcdFlags,
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

/// Addresses of Services.
const SERVICES: &str = "10.96.0.0/12";

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
    #[error("--controllers: {0}")]
    Controllers(#[from] UnknownController),
    #[error(transparent)]
    Run(#[from] RunError),
}

pub(crate) fn run(command: &Server) -> Result<(), ServerError> {
    process::log(0);
    process::block_on(serve(command))?
}

async fn serve(command: &Server) -> Result<(), ServerError> {
    debug_assert!(command.no_node, "the command line demands it");
    let folder = &command.data_dir;
    let storage = command.etcd.storage(folder);
    let opened = storage.open()?;
    let asked = SocketAddr::new(command.bind_address, command.https_port);
    let unbound = |error| ServerError::Bind { address: asked, error };
    let listener = serve::bind(asked).await.map_err(unbound)?;
    let address = listener.local_addr().map_err(unbound)?;

    let pki = Certificates::new(folder);
    let authority = pki.authority()?;
    let reachable = host::reachable_address(address.ip());
    let services: IpNet = SERVICES.parse().expect("it is a range");
    let own = [address.ip(), IpAddr::V4(Ipv4Addr::LOCALHOST), reachable];
    let addresses: Vec<IpAddr> = own.into_iter().chain(services.hosts().next()).collect();
    let server = pki.server(&authority, &addresses)?;
    let kubeconfig = write_kubeconfigs(folder, address, &pki, &authority)?;

    let shown = command.etcd_listen.as_ref().zip(opened.embedded.as_ref());
    let show = |(listen, store): (&Listen, &_)| {
        Face::show(Arc::clone(store), face_config(listen, &server, &authority))
    };
    let face = shown.map(show).transpose()?;
    let config = Config {
        certificate: pki.files("apiserver"),
        tls13_only: false,
        http2: true,
        http2_streams: 100,
        client_authorities: Some(pki.files("ca").certificate),
        front_proxy: None,
        tokens: tokens(pki.service_account_key()?, SocketAddr::new(reachable, address.port())),
        authorization: vec![Mode::Node, Mode::Rbac],
        anonymous: true,
        shared_store: storage.is_shared(),
        compaction: storage.compaction(),
        admission: Wishes { enable: vec!["NodeRestriction".to_string()], ..Wishes::default() },
        allow_privileged: true,
        request_timeout: Duration::from_secs(60),
        min_request_timeout: Duration::from_secs(1800),
        shutdown_delay: Duration::ZERO,
        advertised: advertised(SocketAddr::new(reachable, address.port()), services),
    };
    let ready = || process::announce(&readiness(address, &kubeconfig, face.as_ref()));
    let journal = Journal::new();
    let (door, tasks) = begin_controllers(&command.controllers, storage.is_shared(), &journal)?;
    let schedules = !command.disable.contains(&Component::Scheduler);
    let scheduler = schedules.then(|| scheduler::begin(&door, journal.clone()));
    simulated::begin(&door, command.simulated_nodes.into(), journal, &tasks);
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

/// The files that let clients in; the answer is the administrator's.
fn write_kubeconfigs(
    folder: &Path,
    address: SocketAddr,
    pki: &Certificates,
    authority: &Pair,
) -> Result<PathBuf, CertificateError> {
    let write = |name: &str, user: &Pair| {
        let file = folder.join(format!("{name}.kubeconfig"));
        certificates::write_private(&file, &kubeconfig_text(address, authority, name, user)).map(|()| file)
    };
    write("scheduler", &pki.scheduler(authority)?)?;
    write("admin", &pki.administrator(authority)?)
}

/// Where pods and clients find this server.
fn advertised(at: SocketAddr, services: IpNet) -> Advertised {
    Advertised { address: at.ip(), port: at.port(), service_cidrs: vec![services], node_port: 0 }
}

/// Service accounts get their tokens from this server; `address` is where others find it.
fn tokens(signing_key_file: PathBuf, address: SocketAddr) -> TokenConfig {
    let issuer = "https://kubernetes.default.svc.cluster.local".to_string();
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
fn begin_controllers(
    named: &[String],
    elect: bool,
    journal: &Journal,
) -> Result<(InProcess, Tasks), UnknownController> {
    let (door, tasks) = (InProcess::default(), Tasks::new());
    let manager = Manager { selected: Selected::parse(named)?, ..Manager::default() };
    let (through, journal) = (door.clone(), journal.clone());
    tasks.spawn(async move { controllers::run(&through, &manager, elect, &journal).await });
    Ok((door, tasks))
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

fn kubeconfig_text(address: SocketAddr, authority: &Pair, name: &str, user: &Pair) -> String {
    let base64 = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
    format!(
        "apiVersion: v1\nkind: Config\nclusters:\n- name: coracle\n  cluster:\n    server: https://{address}\n    \
         certificate-authority-data: {}\nusers:\n- name: {name}\n  user:\n    client-certificate-data: {}\n    \
         client-key-data: {}\ncontexts:\n- name: coracle\n  context:\n    cluster: coracle\n    user: {name}\n\
         current-context: coracle\n",
        base64(&authority.certificate),
        base64(&user.certificate),
        base64(&user.key)
    )
}
