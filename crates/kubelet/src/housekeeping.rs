//! Removes the remains of orphaned pods: pods that were deleted while the kubelet was down.
//!
//! Runs once all pods of the node are known, and again until nothing remains; other pods are
//! cleaned up by their workers. Only objects with a kubelet's labels are touched.
//!
//! Pods may arrive meanwhile. A pod is added to the pod manager before anything of it exists on the
//! node, so whatever exists and is not in the pod manager is an orphan.

use std::sync::Arc;
use std::time::Duration;

use coracle_files::remove_tree;
use futures_util::future::join_all;
use k8s_openapi::api::core::v1::Pod;

use crate::cgroups::blocking;
use crate::kubelet::Shared;
use crate::layout::Layout;
use crate::logs;
use crate::pod::PodView;
use crate::pod_manager::PodManager;
use crate::terminate::{Terminator, pods};

/// Grace period of a container whose pod does not set one.
const DEFAULT_GRACE: Duration = Duration::from_secs(2);

/// Retry delays.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// Removes orphans, and retries until none remain.
pub(crate) async fn clean_up(shared: &Arc<Shared>) {
    let mut pause = FIRST_PAUSE;
    while !remove_orphans(shared).await {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Removes what it can; returns whether nothing remains. A failure does not stop the rest.
async fn remove_orphans(shared: &Arc<Shared>) -> bool {
    let mut clean = true;
    if let Err(error) = terminate_orphans(shared).await {
        tracing::warn!(%error, "cannot terminate orphaned pods; retrying");
        clean = false;
    }

    for uid in shared
        .cgroups
        .pods()
        .await
        .iter()
        .filter(|uid| !shared.pod_manager.contains(uid))
    {
        if let Err(error) = shared.cgroups.remove(uid).await {
            tracing::warn!(uid, %error, "cannot remove cgroup of orphaned pod; retrying");
            clean = false;
        }
    }

    if let Err(error) = shared.volumes.clean_up(&shared.pod_manager).await {
        tracing::warn!(%error, "cannot remove volumes of orphaned pods; retrying");
        clean = false;
    }

    remove_logs(shared).await && clean
}

async fn terminate_orphans(shared: &Arc<Shared>) -> coracle_cri::Result<()> {
    let known = pods(shared.host.runtime.as_ref()).await?;
    let orphans = known
        .iter()
        .filter(|pod| !shared.pod_manager.contains(pod.uid()));
    join_all(orphans.map(|pod| terminate_orphan(shared, pod)))
        .await
        .into_iter()
        .collect()
}

async fn terminate_orphan(shared: &Arc<Shared>, pod: &Pod) -> coracle_cri::Result<()> {
    tracing::info!(pod = %pod.id(), "terminating orphaned pod");
    let runtime = shared.host.runtime.as_ref();
    let terminator = Terminator {
        runtime,
        hooks: &shared.hooks,
        default_grace: DEFAULT_GRACE,
        max_grace: Duration::MAX,
    };

    for sandbox in terminator.terminate_containers(pod).await?.sandboxes {
        runtime.remove_pod_sandbox(&sandbox.id).await?;
    }

    Ok(())
}

/// Returns whether nothing remains.
async fn remove_logs(shared: &Shared) -> bool {
    let (layout, pod_manager) = (shared.host.layout.clone(), shared.pod_manager.clone());
    blocking(move || {
        let removed = remove_orphaned_logs(&layout, &pod_manager);
        let unlinked = logs::remove_dangling(&layout);
        if let Err(error) = &unlinked {
            tracing::warn!(%error, "cannot remove container log links");
        }
        removed && unlinked.is_ok()
    })
    .await
}

fn remove_orphaned_logs(layout: &Layout, pod_manager: &PodManager) -> bool {
    let mut all = true;
    for entry in std::fs::read_dir(layout.pod_logs())
        .into_iter()
        .flatten()
        .flatten()
    {
        let name = entry.file_name().to_string_lossy().into_owned();
        let uid = name.rsplit('_').next().unwrap_or_default();
        if !pod_manager.contains(uid)
            && let Err(error) = remove_tree(&entry.path())
        {
            tracing::warn!(path = %entry.path().display(), %error, "cannot remove logs of orphaned pod");
            all = false;
        }
    }

    all
}
