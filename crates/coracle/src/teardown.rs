//! `coracle stop` stops the pods of this machine's cluster, `coracle reset` deletes the cluster. A
//! server leaves its pods running when it stops. These commands stop the server first, so that it
//! does not restart pods, then the pods through the container runtime, as a kubelet does.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use coracle_base::error_chain;
use coracle_cri::Runtime as _;
use coracle_cri::v1::PodSandboxFilter;
use coracle_files::remove_tree;
use coracle_kubelet::shutdown;
use coracle_proxy::NodeNetwork;
use coracle_runtime::Runtime;
use coracle_runtime::images::{ImageError, ImageStore};
use coracle_runtime::rootfs::OverlayRootFs;

use crate::instance::{DEFAULT_DATA_DIR, Instance};
use crate::node_runtime;
use crate::process::{self, ProcessError};
use crate::running;
use crate::server::pod_network::{KnownRanges, PodNetwork};
use crate::server::{cluster_network, node};
use crate::world::WORLD;

/// Stops the server of a cluster on this machine, if it is running, and its pods, with their
/// preStop hooks and grace periods. Statuses and logs are kept; `coracle server` starts the pods
/// again.
#[derive(Args)]
pub(crate) struct Stop {
    /// Data directory of the cluster
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DATA_DIR)]
    data_dir: PathBuf,
    /// Maximum grace period of pods; 0: kill them [default: the grace period of each pod]
    #[arg(long, value_name = "SECONDS")]
    grace_period: Option<u64>,
}

/// Deletes a cluster from this machine: pods, network, packet filter rules, cgroups and the data
/// directory.
#[derive(Args)]
pub(crate) struct Reset {
    /// Data directory of the cluster
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DATA_DIR)]
    data_dir: PathBuf,
    /// Confirm that all data of the cluster is deleted
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum TeardownError {
    #[error("{}: no cluster in this data directory", .0.display())]
    NoCluster(PathBuf),
    #[error("this deletes the cluster in {} and all its data; confirm with --yes", .0.display())]
    NotSure(PathBuf),
    #[error("cannot stop the server")]
    Server(#[source] io::Error),
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error(transparent)]
    ClusterNetwork(#[from] cluster_network::ClusterNetworkError),
    #[error(transparent)]
    Images(#[from] ImageError),
    #[error("cannot open the container runtime")]
    Runtime(#[from] coracle_runtime::Error),
    #[error("cannot remove pod {pod}: {error}")]
    Pod {
        pod: String,
        error: coracle_cri::Error,
    },
    #[error("cannot stop all pods: {0}")]
    Pods(coracle_cri::Error),
    #[error("cannot remove the pod network")]
    Network(#[from] coracle_podnet::Error),
    #[error("cannot remove the network between nodes")]
    Nodes(#[from] coracle_network::KernelError),
    #[error("cannot remove the rules of Services")]
    Services(#[from] coracle_netlink::nftables::NftablesError),
    #[error("cannot remove the forwarding rules of pods")]
    Forwarding(#[from] coracle_proxy::NodeNetworkError),
    #[error("the cluster was removed, but not all of its network: {0}")]
    Left(String),
    #[error("cannot remove {}: {error}", path.display())]
    Remove { path: PathBuf, error: io::Error },
}

pub(crate) fn stop(command: &Stop) -> Result<(), TeardownError> {
    let instance = find(&command.data_dir)?;
    let (was_running, _held) = running::end(&instance.data_dir).map_err(TeardownError::Server)?;

    let most = command
        .grace_period
        .map_or(Duration::MAX, Duration::from_secs);
    let pods = process::block_on(stop_pods(&instance, most))??;

    let server = if was_running { "the server and " } else { "" };
    let pods = if pods == 1 {
        "1 pod".to_owned()
    } else {
        format!("{pods} pods")
    };

    process::announce(&format!(
        "stopped {server}{pods}; `coracle server` starts them again\n"
    ));

    Ok(())
}

pub(crate) fn reset(command: &Reset) -> Result<(), TeardownError> {
    let instance = find(&command.data_dir)?;
    if !command.yes {
        return Err(TeardownError::NotSure(instance.data_dir));
    }

    let held = running::end(&instance.data_dir).map_err(TeardownError::Server)?;
    process::block_on(remove(&instance))??;
    drop(held);
    process::announce(&format!(
        "removed the cluster in {}\n",
        instance.data_dir.display()
    ));

    Ok(())
}

fn find(data_dir: &Path) -> Result<Instance, TeardownError> {
    let known = data_dir.join("pki").exists();
    let instance = Instance::of(data_dir).ok().filter(|_| known);
    instance.ok_or_else(|| TeardownError::NoCluster(data_dir.to_path_buf()))
}

/// Stops all pods gracefully; returns how many were running.
async fn stop_pods(instance: &Instance, most: Duration) -> Result<usize, TeardownError> {
    let Some(runtime) = runtime(instance).await? else {
        return Ok(0);
    };
    shutdown::terminate_all(Arc::new(runtime), WORLD, most)
        .await
        .map_err(TeardownError::Pods)
}

/// Removes all pods and their records.
async fn remove_pods(instance: &Instance) -> Result<(), TeardownError> {
    let Some(runtime) = runtime(instance).await? else {
        return Ok(());
    };
    for pod in runtime
        .list_pod_sandbox(PodSandboxFilter::default())
        .await
        .map_err(TeardownError::Pods)?
    {
        let metadata = pod.metadata.unwrap_or_default();
        let name = || format!("{}/{}", metadata.namespace, metadata.name);
        let removed = runtime.remove_pod_sandbox(&pod.id).await;
        removed.map_err(|error| TeardownError::Pod { pod: name(), error })?;
    }

    Ok(())
}

/// The runtime of the cluster's node; `None` if there never was one.
async fn runtime(instance: &Instance) -> Result<Option<Runtime>, TeardownError> {
    if !instance.runtime().root.exists() {
        return Ok(None);
    }

    let network = network(instance).await?;
    let images = ImageStore::open_for_teardown(node_runtime::images(instance))?;
    let rootfs = OverlayRootFs::new(images, node_runtime::mounts(instance));

    Ok(Some(
        Runtime::open(
            instance.runtime(),
            Arc::new(rootfs),
            Some(network.for_runtime()),
        )
        .await?,
    ))
}

/// The network that the pods were connected with.
async fn network(instance: &Instance) -> Result<PodNetwork, TeardownError> {
    let plugins = cluster_network::saved(instance)?.and_then(|network| network.cni);
    Ok(PodNetwork::open(instance, plugins.as_ref(), KnownRanges::default(), false).await?)
}

/// Removes everything; what of the network cannot be removed is reported at the end, when all else
/// is gone.
async fn remove(instance: &Instance) -> Result<(), TeardownError> {
    remove_pods(instance).await?;

    // Without a node there are neither pods nor rules, and perhaps no `nft` either.
    let left = match instance.runtime().root.exists() {
        true => remove_network(instance).await,
        false => Vec::new(),
    };

    let done = instance.clone();
    process::blocking(move || node::remove_mounts_and_groups(&done)).await;

    for path in [instance.run_dir(), instance.data_dir.clone()] {
        process::blocking(move || {
            remove_tree(&path).map_err(|error| TeardownError::Remove { path, error })
        })
        .await?;
    }

    if left.is_empty() {
        Ok(())
    } else {
        Err(TeardownError::Left(left.join("; ")))
    }
}

/// Removes what the node made of the machine's network, and says what could not be removed and why.
async fn remove_network(instance: &Instance) -> Vec<String> {
    let pods = async { Ok::<_, TeardownError>(network(instance).await?.tear_down().await?) };
    let services = coracle_proxy::clean(&instance.service_table()).map_err(TeardownError::from);
    let forwarding = NodeNetwork {
        instance: instance.name(),
        pod_ranges: Vec::new(),
    }
    .withdraw();

    let names = instance.network();
    let nodes = coracle_network::remove(&names, &instance.network_record());

    let all = [
        pods.await,
        nodes.map_err(TeardownError::from),
        services,
        forwarding.map_err(TeardownError::from),
    ];

    all.into_iter()
        .filter_map(Result::err)
        .map(|error| error_chain(&error))
        .collect()
}
