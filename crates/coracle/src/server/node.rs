//! The node of a cluster in one process: container runtime, pod network, kubelet and service proxy,
//! on threads of their own, so that neither the control plane nor the node delays the other.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use coracle_apiserver::InProcess;
use coracle_apiserver::authn::User;
use coracle_base::error_chain;
use coracle_cgroup::Hierarchies;
use coracle_client::{Client, Informer, Informers, Journal, Resource, Selection, Tasks, Typed};
use coracle_cri::Runtime as _;
use coracle_cri::v1::PodSandboxFilter;
use coracle_kubelet::server::access::{Access, Authorities, BadAuthority};
use coracle_kubelet::server::{Server, TlsError, certificate};
use coracle_kubelet::{Config, ImageSettings, Kubelet, LogRotation};
use coracle_network::Encapsulation;
use coracle_proxy::{DetectLocal, NodeNetwork, NodeNetworkError};
use coracle_runtime::images::{
    ImageError, ImageStore, ImagesConfig, PreloadWatch, ProxyError, Registries,
};
use coracle_runtime::rootfs::OverlayRootFs;
use coracle_runtime::{OpenFiles, Runtime};
use coracle_serving::Flag;
use k8s_openapi::api::core::v1::Node as NodeObject;
use rustix::mount::{UnmountFlags, unmount};
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::addresses::any_address;
use super::cluster_network::ClusterNetwork;
use super::dns::{self, ClusterDns};
use super::pod_network::{self, PodNetwork};
use crate::certificates::Pair;
use crate::component_port::component_metrics;
use crate::instance::Instance;
use crate::kube_proxy;
use crate::process::{self, blocking};
use crate::world::WORLD;

/// Settings of the node.
pub(super) struct Settings {
    /// The flags of the process.
    pub(super) flags: Vec<Flag>,
    pub(super) instance: Instance,
    pub(super) name: String,
    /// The node's addresses, one per IP version, the primary first.
    pub(super) addresses: Vec<IpAddr>,
    pub(super) cluster_network: ClusterNetwork,
    pub(super) domain: String,
    /// The DNS servers of pods.
    pub(super) cluster_dns: Vec<IpAddr>,
    /// The file with the DNS servers of the host.
    pub(super) resolv_conf: PathBuf,
    pub(super) journal: Journal,
    /// The CA of clients of the kubelet API.
    pub(super) authority: String,
    /// The serving certificate of the kubelet API.
    pub(super) certificate: Pair,
    /// `--kubelet-port`.
    pub(super) kubelet_port: Option<u16>,
    /// Open file limit of container processes.
    pub(super) open_files: Option<OpenFiles>,
    /// PID limit of one pod.
    pub(super) pod_pids: Option<i64>,
    pub(super) unsafe_sysctls: Vec<String>,
    pub(super) images: ImageSettings,
    pub(super) registries: Registries,
    pub(super) encapsulation: Encapsulation,
    pub(super) has_network: bool,
    pub(super) has_proxy: bool,
    pub(super) has_dns: bool,
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
    #[error("cannot set up the pod network")]
    Network(#[from] coracle_podnet::Error),
    #[error("cannot enable packet forwarding for pods")]
    Forwarding(#[from] NodeNetworkError),
    #[error(transparent)]
    Proxy(ProxyError),
    #[error("cannot open the image store")]
    Images(#[from] ImageError),
    #[error("cannot open the container runtime")]
    Runtime(#[from] coracle_runtime::Error),
    #[error("cannot list the pod sandboxes of this machine")]
    Pods(#[from] coracle_cri::Error),
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
pub(super) struct Node {
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
    pub(super) async fn begin(
        settings: Settings,
        in_process: &InProcess,
    ) -> Result<Node, NodeError> {
        let threads = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("node")
            .thread_stack_size(process::STACK)
            .enable_all()
            .build()
            .map_err(NodeError::Threads)?;

        let tasks = Tasks::new();
        let (in_process, within) = (in_process.clone(), tasks.clone());

        let (dns_done, dns_settled) = watch::channel(false);
        let opened = threads
            .spawn(async move { open(settings, &in_process, &within, dns_done).await })
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
    pub(super) async fn until_dns_settled(&self) {
        // An error means that the task that starts DNS has ended.
        drop(self.dns_settled.clone().wait_for(|has| *has).await);
    }

    /// Stops the node; its pods keep running.
    pub(super) async fn stop(self) {
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
    in_process: &InProcess,
    tasks: &Tasks,
    dns_done: watch::Sender<bool>,
) -> Result<(), NodeError> {
    let Settings {
        instance,
        cluster_network,
        ..
    } = &settings;
    let forwarding = NodeNetwork {
        instance: instance.name(),
        pod_ranges: cluster_network.cluster_cidr.all().to_vec(),
    };
    blocking(move || forwarding.prepare()).await?;

    let network = PodNetwork::open(
        instance,
        cluster_network.cni.as_ref(),
        Some(cluster_network),
        settings.has_network,
    )
    .await?;
    begin_network(&settings, in_process, &network, tasks);
    let config = ImagesConfig {
        registries: settings.registries.clone(),
        ..images(instance)
    };
    let images = blocking(move || ImageStore::open(config)).await?;
    images.add_built_in().await?;

    // Watch the directory before reading it, so that no file is missed.
    let arrivals = PreloadWatch::at(&instance.preload());

    for image in images.preload(&instance.preload()).await? {
        tracing::info!(id = %image.id, "image preloaded");
    }

    tasks.spawn(images.clone().serve(arrivals));
    let rootfs = OverlayRootFs::new(images.clone(), mounts(instance));

    let config = coracle_runtime::Config {
        open_files: settings.open_files,
        ..instance.runtime()
    };
    let runtime = Runtime::open(config, Arc::new(rootfs), Some(network.for_runtime())).await?;

    let pods = runtime
        .list_pod_sandbox(PodSandboxFilter::default())
        .await?;
    network
        .reclaim(pods.into_iter().map(|pod| pod.id).collect())
        .await?;

    let listener = listen(&settings).await?;
    begin_kubelet(
        &settings,
        in_process,
        runtime,
        images.clone(),
        listener,
        tasks,
    )?;

    if settings.has_proxy {
        begin_proxy(&settings, in_process, tasks);
    }

    if settings.has_dns {
        begin_dns(&settings, in_process, images, tasks, dns_done);
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
    in_process: &InProcess,
    runtime: Runtime,
    images: Arc<ImageStore>,
    listener: TcpListener,
    tasks: &Tasks,
) -> Result<(), NodeError> {
    let client = client(
        in_process,
        &format!("system:node:{}", settings.name),
        &["system:nodes"],
        "kubelet",
    )
    .measured(&component_metrics());

    let config = Config {
        node_name: settings.name.clone(),
        addresses: settings.addresses.clone(),
        data_dir: settings.instance.data_dir.join("kubelet"),
        cgroup_root: settings.instance.name(),
        labels: dns_label(settings.has_dns),
        taints: Vec::new(),
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
        flags: settings.flags.clone(),
        journal: settings.journal.clone(),
        manifests: Some(settings.instance.data_dir.join("manifests")),
    };
    let kubelet = Kubelet::new(config, client.clone(), Arc::new(runtime), images);
    let host = kubelet.host();

    let authorities = Authorities::new(settings.authority.as_bytes())?;
    let access = Access::new(&settings.name, client.clone(), Some(authorities), false);
    let server = Arc::new(Server::new(&host, kubelet.pod_manager(), access));
    let certificate = certificate(
        settings.certificate.certificate.as_bytes(),
        settings.certificate.key.as_bytes(),
    )?;

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
fn begin_network(settings: &Settings, in_process: &InProcess, network: &PodNetwork, tasks: &Tasks) {
    let PodNetwork::Bridge(bridge) = network else {
        return;
    };
    if !settings.has_network {
        return;
    }

    // It lists and watches nodes, as the proxy does.
    let client =
        client(in_process, "system:kube-proxy", &[], "network").measured(&component_metrics());
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
fn begin_proxy(settings: &Settings, in_process: &InProcess, tasks: &Tasks) {
    let client =
        client(in_process, "system:kube-proxy", &[], "kube-proxy").measured(&component_metrics());
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
    in_process: &InProcess,
    images: Arc<ImageStore>,
    tasks: &Tasks,
    dns_done: watch::Sender<bool>,
) {
    let client = client(in_process, "system:coracle", &["system:masters"], "coracle");
    let Some(address) = settings.cluster_network.dns_address() else {
        return;
    };
    let cluster_dns = ClusterDns {
        address,
        domain: settings.domain.clone(),
        any: any_address(&settings.cluster_network.cluster_cidr),
    };
    tasks.spawn(async move {
        let made = match dns::program() {
            Ok((program, libraries)) => images.add_program(dns::IMAGE, &program, &libraries).await,
            Err(error) => return tracing::error!(%error, "cannot find the running binary; cluster DNS not started"),
        };

        if let Err(error) = made {
            return tracing::error!(error = %error_chain(&error), "cannot build the cluster DNS image; cluster DNS not started");
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
fn dns_label(has_image: bool) -> BTreeMap<String, String> {
    let label = (dns::NODE_LABEL.to_owned(), "true".to_owned());
    has_image.then_some(label).into_iter().collect()
}

/// Waits until the Node object is Ready.
pub(super) async fn until_ready(in_process: &InProcess, name: &str) {
    let client = client(in_process, "system:coracle", &["system:masters"], "coracle");
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

fn client(in_process: &InProcess, user: &str, groups: &[&str], agent: &str) -> Client {
    let groups = groups.iter().map(|group| (*group).to_owned()).collect();
    let user = User {
        name: user.to_owned(),
        groups,
        ..User::default()
    }
    .authenticated();
    in_process.client(user, WORLD).named(agent)
}

/// The image store of its node.
pub(crate) fn images(instance: &Instance) -> ImagesConfig {
    ImagesConfig::new(instance.images(), now)
}

/// Where the root filesystems of its containers are mounted.
pub(crate) fn mounts(instance: &Instance) -> PathBuf {
    instance.run_dir().join("rootfs")
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is where the wall clock is handed in from"
)]
fn now() -> SystemTime {
    SystemTime::now()
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
