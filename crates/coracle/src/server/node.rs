//! The node of a cluster in one process: runtime, network of pods, kubelet and service proxy, on
//! threads of their own, so that neither the control plane nor the node waits for the other.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use coracle_apiserver::InProcess;
use coracle_apiserver::authn::User;
use coracle_cgroup::Hierarchies;
use coracle_client::{Client, Informer, Informers, Journal, Resource, Selection, Tasks, Typed};
use coracle_cri::Runtime as _;
use coracle_cri::v1::PodSandboxFilter;
use coracle_kubelet::server::access::{Access, Authorities, BadAuthority};
use coracle_kubelet::server::{Server, TlsError, certificate};
use coracle_kubelet::{Config, Kubelet, LogRotation};
use coracle_proxy::{DetectLocal, NodeNetwork, NodeNetworkError};
use coracle_runtime::images::{Arrivals, ImageError, ImageStore, ImagesConfig};
use coracle_runtime::rootfs::OverlayRootFs;
use coracle_runtime::{OpenFiles, Runtime};
use k8s_openapi::api::core::v1::Node as NodeObject;
use rustix::mount::{UnmountFlags, unmount};
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::dns;
use super::place::{Place, nth_address};
use super::pod_network::PodNetwork;
use crate::certificates::Pair;
use crate::instance::Instance;
use crate::process::{self, blocking};
use crate::world::WORLD;

/// What the node of a cluster has to be told.
pub(super) struct Settings {
    pub(super) instance: Instance,
    pub(super) name: String,
    /// Where others reach this machine.
    pub(super) address: IpAddr,
    pub(super) place: Place,
    pub(super) domain: String,
    pub(super) journal: Journal,
    /// Who signed the certificates of those who ask the node.
    pub(super) authority: String,
    /// What the node shows them.
    pub(super) certificate: Pair,
    /// The port that was asked for.
    pub(super) kubelet_port: Option<u16>,
    /// How many files a process of a container may have open.
    pub(super) open_files: Option<OpenFiles>,
    /// Most processes and threads of one pod.
    pub(super) pod_pids: Option<i64>,
    pub(super) unsafe_sysctls: Vec<String>,
    pub(super) has_proxy: bool,
    pub(super) has_dns: bool,
}

/// The port of the service proxy's health server.
const PROXY_HEALTH_PORT: u16 = 10256;

/// Why there is no node.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NodeError {
    #[error("a node needs root; `coracle server --no-node` does not")]
    NotRoot,
    #[error("no folder for what a reboot empties can be made in /run")]
    RunDir(#[source] io::Error),
    #[error("the threads of the node cannot be started")]
    Threads(#[source] io::Error),
    #[error("the network of pods cannot be made")]
    Network(#[from] coracle_podnet::Error),
    #[error("this machine does not forward the packets of pods")]
    Forwarding(#[from] NodeNetworkError),
    #[error("the images cannot be opened")]
    Images(#[from] ImageError),
    #[error("the container runtime cannot be opened")]
    Runtime(#[from] coracle_runtime::Error),
    #[error("the pods of this machine cannot be listed")]
    Pods(#[from] coracle_cri::Error),
    #[error("port {port} of the kubelet cannot be listened on")]
    Listen { port: u16, source: io::Error },
    #[error(transparent)]
    Certificate(#[from] TlsError),
    #[error(transparent)]
    Authority(#[from] BadAuthority),
    #[error("the node's threads have ended")]
    Ended,
}

/// A node that runs, until this is dropped. Its pods go on then.
pub(super) struct Node {
    threads: Option<tokio::runtime::Runtime>,
    tasks: Tasks,
    /// Whether the cluster's DNS answers, or is not waited for any longer.
    has_names: watch::Receiver<bool>,
}

/// So long the cluster's DNS is waited for before anybody is told that the cluster is ready.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many threads do the node's work.
const THREADS: usize = 2;

impl Node {
    /// Opens everything that a node has and begins; what it asks of the API waits until the server
    /// behind the door is there.
    pub(super) async fn begin(settings: Settings, door: &InProcess) -> Result<Node, NodeError> {
        let threads = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("node")
            .thread_stack_size(process::STACK)
            .enable_all()
            .build()
            .map_err(NodeError::Threads)?;

        let tasks = Tasks::new();
        let (door, within) = (door.clone(), tasks.clone());

        let (tell, has_names) = watch::channel(false);
        let opened = threads
            .spawn(async move { open(settings, &door, &within, tell).await })
            .await;
        let node = Node {
            threads: Some(threads),
            tasks,
            has_names,
        };

        opened.map_err(|_| NodeError::Ended)??;

        Ok(node)
    }

    /// Waits until the cluster has its DNS, or it is known that it will not have one. Whoever is
    /// told that the cluster is ready may ask for its DNS next.
    pub(super) async fn until_named(&self) {
        // An error: whoever would have told has ended.
        drop(self.has_names.clone().wait_for(|has| *has).await);
    }

    /// Ends what the node does; its pods go on.
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
    door: &InProcess,
    tasks: &Tasks,
    tell: watch::Sender<bool>,
) -> Result<(), NodeError> {
    let Settings {
        instance, place, ..
    } = &settings;
    let forwarding = NodeNetwork {
        instance: instance.name(),
        pod_ranges: vec![place.cluster_cidr],
    };
    blocking(move || forwarding.prepare()).await?;

    let network = PodNetwork::open(instance, place.cni.as_ref(), Some(place)).await?;
    let config = images(instance);
    let images = blocking(move || ImageStore::open(config)).await?;
    images.add_built_in().await?;

    // Watched before it is read, so that nothing comes in between.
    let arrivals = Arrivals::at(&instance.preload());

    for image in images.preload(&instance.preload()).await? {
        tracing::info!(id = %image.id, "preloaded");
    }

    tasks.spawn(images.clone().tend(arrivals));
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
    begin_kubelet(&settings, door, runtime, images.clone(), listener, tasks)?;

    if settings.has_proxy {
        begin_proxy(&settings, door, tasks);
    }

    if settings.has_dns {
        begin_dns(&settings, door, images, tasks, tell);
    }

    Ok(())
}

/// Listens on the kubelet's port, or on a free one where nobody has asked for that port.
async fn listen(settings: &Settings) -> Result<TcpListener, NodeError> {
    let port = settings.kubelet_port.unwrap_or(settings.place.kubelet_port);
    let at = |port| SocketAddr::from(([0, 0, 0, 0], port));
    match TcpListener::bind(at(port)).await {
        Err(error)
            if error.kind() == io::ErrorKind::AddrInUse && settings.kubelet_port.is_none() =>
        {
            tracing::info!(
                port,
                "somebody else has the kubelet's port: another one is taken"
            );
            TcpListener::bind(at(0))
                .await
                .map_err(|source| NodeError::Listen { port: 0, source })
        }
        listener => listener.map_err(|source| NodeError::Listen { port, source }),
    }
}

/// The kubelet, with its API on its port.
fn begin_kubelet(
    settings: &Settings,
    door: &InProcess,
    runtime: Runtime,
    images: Arc<ImageStore>,
    listener: TcpListener,
    tasks: &Tasks,
) -> Result<(), NodeError> {
    let client = client(
        door,
        &format!("system:node:{}", settings.name),
        &["system:nodes"],
        "kubelet",
    );

    let config = Config {
        node_name: settings.name.clone(),
        addresses: vec![settings.address],
        data_dir: settings.instance.data_dir.join("kubelet"),
        cgroup_root: settings.instance.name(),
        labels: BTreeMap::new(),
        taints: Vec::new(),
        cluster_dns: nth_address(&settings.place.service_cidr, 10)
            .into_iter()
            .filter(|_| settings.has_dns)
            .collect(),
        cluster_domain: settings.domain.clone(),
        resolv_conf: PathBuf::from("/etc/resolv.conf"),
        logs: LogRotation::default(),
        max_pods: 110,
        pod_pids: settings.pod_pids,
        unsafe_sysctls: settings.unsafe_sysctls.clone(),
        reserved_ports: vec![settings.place.https_port, PROXY_HEALTH_PORT],
        port: listener
            .local_addr()
            .map_or(settings.place.kubelet_port, |address| address.port()),
        healthz: Some(SocketAddr::from(([127, 0, 0, 1], 10248))),
        version: coracle_apiserver::VERSION.to_owned(),
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
        // Held as long as the task: the API of the node ends with it.
        let _stop = stop;
        if let Err(error) = server.serve(listener, certificate, stopped).await {
            tracing::error!(error = %text(&error), "the kubelet's API has ended");
        }
    });

    tasks.spawn(async move {
        if let Err(error) = kubelet.run().await {
            tracing::error!(error = %text(&error), "the kubelet has ended");
        }
    });

    Ok(())
}

/// The rules of Services.
fn begin_proxy(settings: &Settings, door: &InProcess, tasks: &Tasks) {
    let client = client(door, "system:kube-proxy", &[], "kube-proxy");
    let config = coracle_proxy::Config {
        node: settings.name.clone(),
        table: settings.instance.service_table(),
        detect_local: DetectLocal::ClusterRanges(vec![settings.place.cluster_cidr]),
        service_ranges: vec![settings.place.service_cidr],
        min_sync_period: Duration::ZERO,
        ..coracle_proxy::Config::default()
    };

    tasks.spawn(async move {
        if let Err(error) = coracle_proxy::run(config, client, || {
            tracing::info!("Services are led to pods")
        })
        .await
        {
            tracing::error!(%error, "the proxy of Services has ended");
        }
    });
}

/// The names of the cluster: the image that its pod runs, and the objects that make the pod.
fn begin_dns(
    settings: &Settings,
    door: &InProcess,
    images: Arc<ImageStore>,
    tasks: &Tasks,
    tell: watch::Sender<bool>,
) {
    let client = client(door, "system:coracle", &["system:masters"], "coracle");
    let domain = settings.domain.clone();

    let Some(address) = nth_address(&settings.place.service_cidr, 10) else {
        return;
    };
    tasks.spawn(async move {
        let made = match dns::program() {
            Ok((program, libraries)) => images.add_program(dns::IMAGE, &program, &libraries).await,
            Err(error) => return tracing::error!(%error, "this program cannot be found again: no DNS"),
        };

        if let Err(error) = made {
            return tracing::error!(error = %text(&error), "the image of the cluster's DNS cannot be made");
        }
        if let Err(error) = dns::ensure(&client, address, &domain).await {
            return tracing::error!(error = %text(&error), "the cluster's DNS cannot be set up");
        }
        if tokio::time::timeout(PATIENCE, dns::until_answered(client)).await.is_err() {
            tracing::warn!("the cluster's DNS does not answer yet");
        }

        tell.send_replace(true);
    });
}

/// Waits until the node is ready for pods.
pub(super) async fn until_ready(door: &InProcess, name: &str) {
    let client = client(door, "system:coracle", &["system:masters"], "coracle");
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

/// An error with all that led to it.
fn text(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

fn client(door: &InProcess, user: &str, groups: &[&str], agent: &str) -> Client {
    let groups = groups.iter().map(|group| (*group).to_owned()).collect();
    let user = User {
        name: user.to_owned(),
        groups,
        ..User::default()
    }
    .authenticated();
    door.client(user, WORLD).named(agent)
}

/// Where its images are kept.
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

/// Takes away the mounts and cgroups that are left when no pod is. What cannot be removed is told,
/// and ends nothing.
pub(crate) fn remove_mounts_and_groups(instance: &Instance) {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    for path in mounts_below(&mounts, &[&instance.run_dir(), &instance.data_dir]) {
        if let Err(errno) = unmount(&path, UnmountFlags::DETACH) {
            tracing::warn!(path = %path.display(), error = %io::Error::from(errno), "cannot be unmounted");
        }
    }

    let removed = Hierarchies::detect().and_then(|hierarchies| {
        let group = hierarchies.group(&instance.name());
        // Supervisors of pods that could not be ended in time go with the cluster.
        group.child("supervisors").kill()?;
        group.kill()?;
        group.remove()
    });

    if let Err(error) = removed {
        tracing::warn!(%error, "the cgroups cannot be removed");
    }
}

/// What is mounted below these folders, the last one first.
fn mounts_below(mountinfo: &str, folders: &[&Path]) -> Vec<PathBuf> {
    let place = |line: &str| {
        line.split(' ')
            .nth(4)
            .map(|path| PathBuf::from(path.replace("\\040", " ")))
    };
    let ours = |path: &PathBuf| folders.iter().any(|folder| path.starts_with(folder));
    let mut found: Vec<PathBuf> = mountinfo.lines().filter_map(place).filter(ours).collect();
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_taken_away_from_the_last_to_the_first() {
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
