//! Assembles the kubelet: what its pod workers share, and the sync loop that feeds them.
//!
//! Pods of this node come from an informer, runtime events from the [`pleg`](crate::pleg); both
//! wake pod workers. [`node`](crate::node) maintains the Node object, its lease and status. No
//! state survives a restart: running pods are found again by their labels.

use std::io;
use std::sync::Arc;

use coracle_cgroup::Hierarchies;
use coracle_client::{
    Client, Informer, Informers, Recorder, Resource, Selection, Tasks, Typed, Whole,
};
use coracle_cri::v1::{ImageFilter, RuntimeHandler};
use coracle_cri::{Images, Runtime};
use coracle_metrics::Registry;
use k8s_openapi::api::core::v1::{Node, Pod};
use tokio::sync::watch;

use crate::backoff::BackOff;
use crate::cgroups::{PodCgroups, blocking, pods_cgroup};
use crate::config::Config;
use crate::env::Environment;
use crate::hooks::HookRunner;
use crate::host::{COMPONENT, Host};
use crate::images::ImageManager;
use crate::layout::Layout;
use crate::logs;
use crate::manifests::{self, Manifests};
use crate::mirror_pods::MirrorPods;
use crate::node::machine::Machine;
use crate::node::{self, allocatable};
use crate::pleg;
use crate::pod_manager::PodManager;
use crate::pod_workers::{PodMetrics, PodWorkers};
use crate::probes::ProbeManager;
use crate::references::References;
use crate::runtime_operations::{MeasuredImages, MeasuredRuntime};
use crate::server::healthz;
use crate::status_manager::StatusManager;
use crate::sync_loop::{Inputs, SyncLoop};
use crate::volumes::VolumeManager;

/// State shared by all pod workers.
pub(crate) struct Shared {
    pub(crate) host: Arc<Host>,
    pub(crate) pod_manager: PodManager,
    pub(crate) volumes: VolumeManager,
    pub(crate) environment: Environment,
    pub(crate) probes: ProbeManager,
    pub(crate) hooks: HookRunner,
    /// Kernel parameters that pods may set besides the safe ones.
    pub(crate) sysctls: Vec<String>,
    /// Host ports (TCP) that pods cannot have.
    pub(crate) reserved_ports: Vec<u16>,
    pub(crate) cgroups: PodCgroups,
    pub(crate) status_manager: StatusManager,
    pub(crate) image_manager: ImageManager,
    pub(crate) references: Arc<References>,
    pub(crate) pod_metrics: PodMetrics,
    pub(crate) crashes: BackOff,
    /// Memory of the node in bytes.
    pub(crate) memory: i64,
    /// Prefix of container IDs.
    pub(crate) runtime_name: String,
    network: watch::Receiver<Option<String>>,
}

impl Shared {
    /// Why the pod network is not ready; none: it is.
    pub(crate) fn network_problem(&self) -> Option<String> {
        self.network.borrow().clone()
    }
}

/// Why the kubelet cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot create cgroups for pods")]
    Groups(#[from] coracle_cgroup::Error),
    #[error("cannot reach the container runtime")]
    Runtime(#[from] coracle_cri::Error),
    #[error("cannot create kubelet directories")]
    Folders(#[from] io::Error),
}

/// The kubelet of one node.
pub struct Kubelet {
    config: Config,
    host: Arc<Host>,
    pod_manager: PodManager,
    pods: Informer<Typed<Pod>>,
    tasks: Tasks,
}

/// Tasks hold the set that they run in, so dropping it does not end them.
impl Drop for Kubelet {
    fn drop(&mut self) {
        self.tasks.end();
    }
}

impl Kubelet {
    /// Assembles a kubelet without side effects on pods. `client` is `system:node:<name>`.
    pub fn new(
        config: Config,
        client: Client,
        runtime: Arc<dyn Runtime>,
        images: Arc<dyn Images>,
    ) -> Kubelet {
        let tasks = Tasks::new();
        let metrics = client.metrics().clone();
        let runtime = Arc::new(MeasuredRuntime::new(runtime, &metrics));
        let images = Arc::new(MeasuredImages::new(images, &metrics));
        let informers = Informers::new(client.clone(), tasks.clone());

        let on_node = Selection::all(&Resource::of::<Pod>())
            .fields(&format!("spec.nodeName={}", config.node_name));
        let host = Arc::new(Host {
            node_name: config.node_name.clone(),
            addresses: config.addresses.clone(),
            layout: Layout::below(&config.data_dir),
            cluster_dns: config.cluster_dns.clone(),
            cluster_domain: config.cluster_domain.clone(),
            resolv_conf: config.resolv_conf.clone(),
            runtime,
            images,
            events: Recorder::new(&client, COMPONENT, &tasks).host(&config.node_name),
            journal: config.journal.clone(),
            world: client.world(),
            informers: informers.clone(),
            metrics,
            probe_metrics: Registry::default(),
            settings: config.settings(),
            version: config.version,
            client,
        });

        let pods = informers.of(on_node);
        Kubelet {
            config,
            host,
            pod_manager: PodManager::default(),
            pods,
            tasks,
        }
    }

    /// The node, for the parts of the kubelet and its API server.
    pub fn host(&self) -> Arc<Host> {
        self.host.clone()
    }

    /// The pods of this node, for the kubelet API.
    pub fn pod_manager(&self) -> PodManager {
        self.pod_manager.clone()
    }

    /// Creates the cgroups of pods, limited to the node's allocatable.
    async fn pod_cgroups(
        &self,
        hierarchies: &Hierarchies,
        machine: &Machine,
    ) -> Result<PodCgroups, coracle_cgroup::Error> {
        let of_one = self
            .config
            .pod_pids
            .unwrap_or_else(|| allocatable::pids_of_one_pod(machine));
        let together = allocatable::limits(machine);
        PodCgroups::open(hierarchies, &self.config.cgroup_root, together, of_one).await
    }

    async fn open_image_manager(&self, host: &Host) -> io::Result<ImageManager> {
        let images = host.images.list_images(ImageFilter::default()).await.ok();
        let (settings, now) = (self.config.images.clone(), host.now());
        let folder = host.layout.root().to_owned();
        blocking(move || ImageManager::open(&settings, &folder, images.as_deref(), now)).await
    }

    /// Runs the node until the future is dropped. Containers keep running.
    ///
    /// # Errors
    /// Only during start.
    pub async fn run(self) -> Result<(), StartError> {
        let host = self.host.clone();
        let runtime = host.runtime.version().await?;
        let handlers = host.runtime.status(false).await?.runtime_handlers;

        let recursive_read_only = |handler: &RuntimeHandler| {
            handler.name.is_empty()
                && handler
                    .features
                    .as_ref()
                    .is_some_and(|features| features.recursive_read_only_mounts)
        };

        let (references, changed) = References::new(&host.client);
        let (probes, results) = ProbeManager::new(&host);
        let layout = host.layout.clone();
        blocking(move || layout.make()).await?;
        let hierarchies = Hierarchies::detect()?;
        let ceiling = hierarchies
            .group(&pods_cgroup(&self.config.cgroup_root))
            .ceiling();
        let machine = Machine::read(host.layout.root(), ceiling);

        let (network, network_status) = watch::channel(Some(
            "container runtime status check may not have completed yet".to_owned(),
        ));
        let image_manager = self.open_image_manager(&host).await?;
        let shared = Arc::new(Shared {
            pod_manager: self.pod_manager.clone(),
            volumes: VolumeManager::new(
                &host,
                references.clone(),
                handlers.iter().any(recursive_read_only),
            ),
            environment: Environment::new(&host, references.clone()),
            references,
            probes,
            hooks: HookRunner::new(&host),
            cgroups: self.pod_cgroups(&hierarchies, &machine).await?,
            sysctls: self.config.unsafe_sysctls.clone(),
            reserved_ports: self.config.all_reserved_ports(),
            status_manager: StatusManager::new(&host.client, self.pods.clone(), &self.tasks),
            image_manager,
            pod_metrics: PodMetrics::new(&host.metrics),
            crashes: BackOff::default(),
            memory: machine.memory,
            runtime_name: runtime.runtime_name.clone(),
            network: network_status,
            host: host.clone(),
        });

        if let Some(address) = self.config.healthz {
            healthz::begin(address, &self.tasks).await;
        }

        let node = node::Node::new(host.clone(), &self.config, machine, &runtime, network);
        if self.config.registers {
            node.register().await;
        }
        let of_name = format!("metadata.name={}", self.config.node_name);
        let object = host
            .informers
            .of::<Whole>(Selection::all(&Resource::of::<Node>()).fields(&of_name));
        object.synced().await;

        let ranges = node.restore_pod_cidrs(&object).await;
        let workers = PodWorkers::new(shared.clone(), self.tasks.clone());
        let (first, second) = (host.clone(), workers.clone());
        self.tasks
            .spawn(async move { pleg::run(&first, &second).await });

        let (first, rotation) = (host.clone(), self.config.logs.clone());
        self.tasks
            .spawn(async move { logs::rotation::run(&first, &rotation).await });

        self.tasks.spawn(node.run(object.clone(), ranges));
        let mirrors = MirrorPods::new(
            &host.client,
            &host.node_name,
            self.pods.clone(),
            object.clone(),
            &self.tasks,
        );

        let sync_loop = SyncLoop {
            shared,
            workers,
            mirrors,
            node: object,
            tasks: self.tasks.clone(),
            pods_changed: Arc::default(),
            manifests: Manifests::new(),
            api_synced: false,
            files_synced: self.config.manifests.is_none(),
        };

        let files =
            self.config.manifests.clone().map(|place| {
                manifests::follow(place, host.node_name.clone(), host.world, &self.tasks)
            });

        sync_loop
            .run(Inputs {
                api: self.pods.subscribe(),
                files,
                probes: results,
                changed,
            })
            .await;

        Ok(())
    }
}
