//! The node of a cluster in one process: container runtime, pod network, kubelet and service proxy,
//! on threads of their own, so that neither the control plane nor the node delays the other.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use coracle_apiserver::InProcess;
use coracle_apiserver::authn::User;
use coracle_base::error_chain;
use coracle_cgroup::Hierarchies;
use coracle_client::{Client, Informer, Informers, Journal, Resource, Selection, Tasks, Typed};
use coracle_kubelet::server::access::{Access, AccessConfig, Authorities, BadAuthority};
use coracle_kubelet::server::{Server, TlsError};
use coracle_kubelet::{Config, ImageSettings, Kubelet, LogRotation, Shown};
use coracle_network::Encapsulation;
use coracle_proxy::DetectLocal;
use coracle_runtime::images::{ImageStore, ProxyError, Registries};
use coracle_runtime::{OpenFiles, Runtime};
use coracle_serving::Flag;
use k8s_openapi::api::core::v1::{Node as NodeObject, Taint};
use rustix::mount::{UnmountFlags, unmount};
use rustls::server::ResolvesServerCert;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::addresses::any_address;
use super::cluster_network::ClusterNetwork;
use super::dns::{self, ClusterDns};
use super::pod_network::{self, KnownRanges, PodNetwork};
use crate::component_port::component_metrics;
use crate::instance::Instance;
use crate::kube_proxy;
use crate::node_runtime::{self, RuntimeError, RuntimeSettings};
use crate::process;
use crate::world::WORLD;

/// Settings of the node.
pub(crate) struct Settings {
    /// The flags of the process.
    pub(crate) flags: Vec<Flag>,
    pub(crate) instance: Instance,
    pub(crate) name: String,
    /// The node's addresses; the first is the primary one.
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) external_addresses: Vec<IpAddr>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) taints: Vec<Taint>,
    pub(crate) cluster_network: ClusterNetwork,
    pub(crate) domain: String,
    /// DNS servers of pods; none: those of the host.
    pub(crate) cluster_dns: Vec<IpAddr>,
    /// The file with the DNS servers of the host.
    pub(crate) resolv_conf: PathBuf,
    pub(crate) journal: Journal,
    /// The CA of clients of the kubelet API.
    pub(crate) authority: String,
    /// The serving certificate of the kubelet API.
    pub(crate) certificate: Arc<dyn ResolvesServerCert>,
    /// `--kubelet-port`.
    pub(crate) kubelet_port: Option<u16>,
    /// Open file limit of container processes.
    pub(crate) open_files: Option<OpenFiles>,
    /// PID limit of one pod.
    pub(crate) pod_pids: Option<i64>,
    pub(crate) unsafe_sysctls: Vec<String>,
    pub(crate) images: ImageSettings,
    pub(crate) registries: Registries,
    /// The API as `system:node:NAME`.
    pub(crate) client: Client,
    pub(crate) encapsulation: Encapsulation,
    /// The API for the network between nodes, which lists and watches them; none: it is not started.
    pub(crate) network: Option<Client>,
    /// The API as the service proxy; none: it is not started.
    pub(crate) proxy: Option<Client>,
    pub(crate) dns: Dns,
}

/// What a node has to do with the cluster DNS.
pub(crate) enum Dns {
    Disabled,
    /// It has the image of its pods.
    Image,
    /// It has the image, and creates the objects as an administrator.
    Cluster(Client),
}

/// The port of the service proxy's health server.
const PROXY_HEALTH_PORT: u16 = 10256;

/// Why the node cannot be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NodeError {
    #[error("a node needs root; run as root, or use `coracle server --no-node`")]
    NotRoot,
    #[error("cannot create the runtime directory in /run")]
    RunDir(#[source] io::Error),
    #[error("cannot start the threads of the node")]
    Threads(#[source] io::Error),
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    #[error(transparent)]
    Proxy(ProxyError),
    #[error("cannot listen on kubelet port {port}")]
    Listen { port: u16, source: io::Error },
    #[error(transparent)]
    Certificate(#[from] TlsError),
    #[error(transparent)]
    Authority(#[from] BadAuthority),
    #[error("the node's async runtime has stopped")]
    Ended,
}

/// A running node; it stops when dropped. Its pods keep running.
pub(crate) struct Node {
    threads: Option<tokio::runtime::Runtime>,
    tasks: Tasks,
    /// Whether the cluster DNS is ready, or the wait for it has timed out.
    dns_settled: watch::Receiver<bool>,
}

/// How long to wait for the cluster DNS before the ready message is printed.
const DNS_TIMEOUT: Duration = Duration::from_secs(5);

/// Number of worker threads of the node.
const THREADS: usize = 2;

impl Node {
    /// Starts the node. Its API requests wait until the API server is up.
    pub(crate) async fn begin(settings: Settings) -> Result<Node, NodeError> {
        let threads = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("node")
            .thread_stack_size(process::STACK)
            .enable_all()
            .build()
            .map_err(NodeError::Threads)?;

        let tasks = Tasks::new();
        let within = tasks.clone();

        let (dns_done, dns_settled) = watch::channel(false);
        let opened = threads
            .spawn(async move { open(settings, &within, dns_done).await })
            .await;
        let node = Node {
            threads: Some(threads),
            tasks,
            dns_settled,
        };

        opened.map_err(|_| NodeError::Ended)??;

        Ok(node)
    }

    /// Waits until the cluster DNS is ready or has failed: a user of a ready cluster may use DNS
    /// next.
    pub(crate) async fn until_dns_settled(&self) {
        // An error means that the task that starts DNS has ended.
        drop(self.dns_settled.clone().wait_for(|has| *has).await);
    }

    /// Stops the node; its pods keep running.
    pub(crate) async fn stop(self) {
        self.tasks.stop().await;
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(threads) = self.threads.take() {
            threads.shutdown_background();
        }
    }
}

async fn open(
    settings: Settings,
    tasks: &Tasks,
    dns_done: watch::Sender<bool>,
) -> Result<(), NodeError> {
    let cluster_network = &settings.cluster_network;
    let config = RuntimeSettings {
        instance: &settings.instance,
        ranges: KnownRanges {
            pods: cluster_network.cluster_cidr.all().to_vec(),
            services: cluster_network.service_cidr.all().to_vec(),
        },
        cni: cluster_network.cni.as_ref(),
        has_network: settings.network.is_some(),
        registries: settings.registries.clone(),
        open_files: settings.open_files,
    };
    let (runtime, images, network) = node_runtime::open(config, tasks).await?;
    if let Some(client) = &settings.network {
        begin_network(&settings, client, &network, tasks);
    }

    // The pod of the cluster DNS comes as soon as the node is registered.
    if matches!(settings.dns, Dns::Image) {
        add_dns_image(&images).await;
    }

    let listener = listen(&settings).await?;
    begin_kubelet(&settings, runtime, images.clone(), listener, tasks)?;

    if let Some(client) = &settings.proxy {
        begin_proxy(&settings, client, tasks);
    }

    match &settings.dns {
        Dns::Disabled | Dns::Image => {}
        Dns::Cluster(client) => begin_dns(&settings, client, images, tasks, dns_done),
    }

    Ok(())
}

/// Listens on the kubelet port, or on a free one if the port is in use and was not set by a flag.
async fn listen(settings: &Settings) -> Result<TcpListener, NodeError> {
    let port = settings
        .kubelet_port
        .unwrap_or(settings.cluster_network.kubelet_port);
    let any = any_address(&settings.cluster_network.cluster_cidr);
    let at = |port| SocketAddr::new(any, port);
    match TcpListener::bind(at(port)).await {
        Err(error)
            if error.kind() == io::ErrorKind::AddrInUse && settings.kubelet_port.is_none() =>
        {
            tracing::info!(port, "kubelet port in use; selecting a free port");
            TcpListener::bind(at(0))
                .await
                .map_err(|source| NodeError::Listen { port: 0, source })
        }
        listener => listener.map_err(|source| NodeError::Listen { port, source }),
    }
}

/// Starts the kubelet and its API server.
fn begin_kubelet(
    settings: &Settings,
    runtime: Runtime,
    images: Arc<ImageStore>,
    listener: TcpListener,
    tasks: &Tasks,
) -> Result<(), NodeError> {
    let client = settings.client.clone().measured(&component_metrics());
    let mut labels = dns_label(&settings.dns);
    labels.extend(settings.labels.clone());

    let config = Config {
        node_name: settings.name.clone(),
        addresses: settings.addresses.clone(),
        external_addresses: settings.external_addresses.clone(),
        provider_id: None,
        registers: true,
        data_dir: settings.instance.data_dir.join("kubelet"),
        cgroup_root: settings.instance.name(),
        labels,
        taints: settings.taints.clone(),
        cluster_dns: settings.cluster_dns.clone(),
        cluster_domain: settings.domain.clone(),
        resolv_conf: settings.resolv_conf.clone(),
        logs: LogRotation::default(),
        max_pods: 110,
        pod_pids: settings.pod_pids,
        unsafe_sysctls: settings.unsafe_sysctls.clone(),
        images: settings.images.clone(),
        reserved_ports: vec![settings.cluster_network.https_port, PROXY_HEALTH_PORT],
        port: listener
            .local_addr()
            .map_or(settings.cluster_network.kubelet_port, |address| {
                address.port()
            }),
        healthz: Some(SocketAddr::from(([127, 0, 0, 1], 10248))),
        version: coracle_apiserver::VERSION,
        shown: Shown::Flags(settings.flags.clone()),
        journal: settings.journal.clone(),
        manifests: Some(settings.instance.data_dir.join("manifests")),
    };
    let kubelet = Kubelet::new(config, client.clone(), Arc::new(runtime), images);
    let host = kubelet.host();

    let authorities = Authorities::new(settings.authority.as_bytes())?;
    let config = AccessConfig {
        authorities: Some(authorities),
        ..AccessConfig::default()
    };
    let access = Access::new(&settings.name, client.clone(), config);
    let server = Arc::new(Server::new(&host, kubelet.pod_manager(), access));
    let certificate = settings.certificate.clone();

    let (stop, stopped) = watch::channel(false);
    tasks.spawn(async move {
        // Held by the task, so that the API server stops with it.
        let _stop = stop;
        if let Err(error) = server.serve(listener, certificate, stopped).await {
            tracing::error!(error = %error_chain(&error), "kubelet API server failed");
        }
    });

    tasks.spawn(async move {
        if let Err(error) = kubelet.run().await {
            tracing::error!(error = %error_chain(&error), "kubelet failed");
        }
    });

    Ok(())
}

/// Starts the network between nodes. CNI plugins bring their own.
fn begin_network(settings: &Settings, client: &Client, network: &PodNetwork, tasks: &Tasks) {
    let PodNetwork::Bridge(bridge) = network else {
        return;
    };

    let client = client.clone().measured(&component_metrics());
    let config = coracle_network::Config {
        node: settings.name.clone(),
        names: settings.instance.network(),
        record: settings.instance.network_record(),
        encapsulation: settings.encapsulation,
        cluster_ranges: settings.cluster_network.cluster_cidr.all().to_vec(),
    };

    let (mtu, learnt) = watch::channel(None);
    tasks.spawn(pod_network::follow_mtu(bridge.clone(), learnt));
    tasks.spawn(async move {
        if let Err(error) = coracle_network::run(config, client, mtu).await {
            tracing::error!(error = %error_chain(&error), "network between nodes failed");
        }
    });
}

/// Starts the service proxy.
fn begin_proxy(settings: &Settings, client: &Client, tasks: &Tasks) {
    let client = client.clone().measured(&component_metrics());
    let config = coracle_proxy::Config {
        node: settings.name.clone(),
        table: settings.instance.service_table(),
        detect_local: DetectLocal::ClusterRanges(
            settings.cluster_network.cluster_cidr.all().to_vec(),
        ),
        service_ranges: settings.cluster_network.service_cidr.all().to_vec(),
        min_sync_period: Duration::ZERO,
        version: coracle_apiserver::VERSION,
        ..coracle_proxy::Config::default()
    };
    let config = coracle_proxy::Config {
        settings: kube_proxy::shown_in(&settings.flags, &config),
        ..config
    };

    tasks.spawn(async move {
        if let Err(error) =
            coracle_proxy::run(config, client, || tracing::info!("service proxy ready")).await
        {
            tracing::error!(%error, "service proxy failed");
        }
    });
}

/// Starts the cluster DNS: builds the image of its pod and applies its objects.
fn begin_dns(
    settings: &Settings,
    client: &Client,
    images: Arc<ImageStore>,
    tasks: &Tasks,
    dns_done: watch::Sender<bool>,
) {
    let client = client.clone();
    let Some(address) = settings.cluster_network.dns_address() else {
        return;
    };
    let cluster_dns = ClusterDns {
        address,
        domain: settings.domain.clone(),
        any: any_address(&settings.cluster_network.cluster_cidr),
    };
    tasks.spawn(async move {
        if !add_dns_image(&images).await {
            return;
        }
        if let Err(error) = dns::ensure(&client, &cluster_dns).await {
            return tracing::error!(error = %error_chain(&error), "cannot apply the cluster DNS objects; cluster DNS not started");
        }
        if let Err(error) = dns::delete_deployment(&client).await {
            tracing::error!(error = %error_chain(&error), "cannot delete the Deployment of the cluster DNS of an earlier version");
        }
        if tokio::time::timeout(DNS_TIMEOUT, dns::until_ready(client)).await.is_err() {
            tracing::warn!("cluster DNS is not ready yet; see `kubectl -n kube-system get pods -l k8s-app=kube-dns`");
        }

        dns_done.send_replace(true);
    });
}

/// The labels of a node that has the image of the cluster DNS.
fn dns_label(dns: &Dns) -> BTreeMap<String, String> {
    let has_image = !matches!(dns, Dns::Disabled);
    let label = (dns::NODE_LABEL.to_owned(), "true".to_owned());
    has_image.then_some(label).into_iter().collect()
}

/// Builds the image of the cluster DNS; returns whether it is there.
async fn add_dns_image(images: &ImageStore) -> bool {
    let added = match dns::program() {
        Ok((program, libraries)) => images.add_program(dns::IMAGE, &program, &libraries).await,
        Err(error) => {
            tracing::error!(%error, "cannot find the running binary; no cluster DNS on this node");
            return false;
        }
    };
    added
        .inspect_err(|error| {
            tracing::error!(error = %error_chain(error), "cannot build the cluster DNS image; no cluster DNS on this node");
        })
        .is_ok()
}

/// Waits until the Node object is Ready.
pub(crate) async fn until_ready(client: Client, name: &str) {
    let tasks = Tasks::new();
    let own =
        Selection::all(&Resource::of::<NodeObject>()).fields(&format!("metadata.name={name}"));
    let informers = Informers::new(client, tasks.clone());
    let nodes: Informer<Typed<NodeObject>> = informers.of(own);

    let mut changes = nodes.subscribe();
    loop {
        let change = changes.next().await;
        if change.object().is_some_and(|node| is_ready(node)) {
            break;
        }
    }

    drop(tasks);
}

fn is_ready(node: &NodeObject) -> bool {
    let conditions = node
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_ref());
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

pub(super) fn client(in_process: &InProcess, user: &str, groups: &[&str], agent: &str) -> Client {
    let groups = groups.iter().map(|group| (*group).to_owned()).collect();
    let user = User {
        name: user.to_owned(),
        groups,
        ..User::default()
    }
    .authenticated();
    in_process.client(user, WORLD).named(agent)
}

/// Removes leftover mounts and cgroups after the pods. Failures are logged and do not stop the
/// reset.
pub(crate) fn remove_mounts_and_groups(instance: &Instance) {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    for path in mounts_below(&mounts, &[&instance.run_dir(), &instance.data_dir]) {
        if let Err(errno) = unmount(&path, UnmountFlags::DETACH) {
            tracing::warn!(path = %path.display(), error = %io::Error::from(errno), "cannot unmount");
        }
    }

    let removed = Hierarchies::detect().and_then(|hierarchies| {
        let group = hierarchies.group(&instance.name());
        // Supervisors of pods that could not be stopped in time are killed with the cluster.
        group.child("supervisors").kill()?;
        group.kill()?;
        group.remove()
    });

    if let Err(error) = removed {
        tracing::warn!(%error, "cannot remove cgroups");
    }
}

/// Mount points below these directories, last mounted first.
fn mounts_below(mountinfo: &str, folders: &[&Path]) -> Vec<PathBuf> {
    let mount_point = |line: &str| {
        line.split(' ')
            .nth(4)
            .map(|path| PathBuf::from(path.replace("\\040", " ")))
    };
    let ours = |path: &PathBuf| folders.iter().any(|folder| path.starts_with(folder));
    let mut found: Vec<PathBuf> = mountinfo
        .lines()
        .filter_map(mount_point)
        .filter(ours)
        .collect();
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_removed_from_the_last_to_the_first() {
        let table = "21 1 0:19 / /proc rw - proc proc rw\n\
                     30 1 0:20 / /run/coracle/a rw - tmpfs x rw\n\
                     31 30 0:21 / /run/coracle/a/with\\040space rw - tmpfs x rw\n\
                     32 1 0:22 / /run/coracle/ab rw - tmpfs x rw\n";

        let found = mounts_below(
            table,
            &[Path::new("/run/coracle/a"), Path::new("/var/lib/x")],
        );

        assert_eq!(
            found,
            ["/run/coracle/a/with space", "/run/coracle/a"].map(PathBuf::from)
        );
    }
}
