//! The container runtime of a node, with its images and its pod network.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use coracle_client::Tasks;
use coracle_cri::Runtime as _;
use coracle_cri::v1::PodSandboxFilter;
use coracle_proxy::{NodeNetwork, NodeNetworkError};
use coracle_runtime::images::{ImageError, ImageStore, ImagesConfig, PreloadWatch, Registries};
use coracle_runtime::rootfs::OverlayRootFs;
use coracle_runtime::{OpenFiles, Runtime};

use crate::instance::Instance;
use crate::process::blocking;
use crate::server::pod_network::{KnownRanges, Plugins, PodNetwork};

/// Settings of the runtime of a node.
pub(crate) struct RuntimeSettings<'a> {
    pub(crate) instance: &'a Instance,
    pub(crate) ranges: KnownRanges,
    pub(crate) cni: Option<&'a Plugins>,
    /// Whether the network between nodes runs too.
    pub(crate) has_network: bool,
    pub(crate) registries: Registries,
    /// Open file limit of container processes.
    pub(crate) open_files: Option<OpenFiles>,
}

/// Why the runtime of a node cannot be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RuntimeError {
    #[error("cannot set up the pod network")]
    Network(#[from] coracle_podnet::Error),
    #[error("cannot enable packet forwarding for pods")]
    Forwarding(#[from] NodeNetworkError),
    #[error("cannot open the image store")]
    Images(#[from] ImageError),
    #[error("cannot open the container runtime")]
    Runtime(#[from] coracle_runtime::Error),
    #[error("cannot list the pod sandboxes of this machine")]
    Pods(#[from] coracle_cri::Error),
}

/// Opens the runtime, imports images that are preloaded, and finds the pods that run.
pub(crate) async fn open(
    settings: RuntimeSettings<'_>,
    tasks: &Tasks,
) -> Result<(Runtime, Arc<ImageStore>, PodNetwork), RuntimeError> {
    let instance = settings.instance;
    let forwarding = NodeNetwork {
        instance: instance.name(),
        pod_ranges: settings.ranges.pods.clone(),
    };
    blocking(move || forwarding.prepare()).await?;

    let network = PodNetwork::open(
        instance,
        settings.cni,
        settings.ranges,
        settings.has_network,
    )
    .await?;
    let config = ImagesConfig {
        registries: settings.registries,
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

    Ok((runtime, images, network))
}

/// The image store of a node.
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
