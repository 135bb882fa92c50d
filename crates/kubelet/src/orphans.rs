//! What is left of pods that nobody knows any more: they went while no kubelet was there to see it.
//!
//! Looked for when all pods of the node are known, and again while something of it does not go;
//! every other pod has a worker, which cleans up behind itself. Only what carries a kubelet's
//! labels is touched.
//!
//! That takes a while, and pods come meanwhile. A pod is in the roster before it has anything on
//! this node: whatever is found and is not in the roster then is nobody's.

use std::sync::Arc;
use std::time::Duration;

use coracle_files::remove_tree;
use futures_util::future::join_all;
use k8s_openapi::api::core::v1::Pod;

use crate::cgroups::blocking;
use crate::ending::{Ending, pods};
use crate::kubelet::Shared;
use crate::layout::Layout;
use crate::logs;
use crate::pod::PodView;
use crate::roster::Roster;

/// How long a container may take whose pod never said.
const GRACE: Duration = Duration::from_secs(2);

/// How long it takes until what could not be taken away is tried again: longer every time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// Takes away what belongs to no pod, however often that has to be tried.
pub(crate) async fn clean_up(shared: &Arc<Shared>) {
    let mut pause = FIRST_PAUSE;
    while !is_clean(shared).await {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Takes away what goes; whether that was all. What does not go keeps nothing else from going.
async fn is_clean(shared: &Arc<Shared>) -> bool {
    let mut clean = true;
    if let Err(error) = end_pods(shared).await {
        tracing::warn!(%error, "pods that nobody knows are not ended");
        clean = false;
    }

    for uid in shared
        .groups
        .pods()
        .await
        .iter()
        .filter(|uid| !shared.roster.knows(uid))
    {
        if let Err(error) = shared.groups.remove(uid).await {
            tracing::warn!(uid, %error, "the cgroup of a pod that nobody knows is not removed");
            clean = false;
        }
    }

    if let Err(error) = shared.volumes.clean_up(&shared.roster).await {
        tracing::warn!(%error, "volumes of pods that nobody knows are not removed");
        clean = false;
    }

    remove_logs(shared).await && clean
}

async fn end_pods(shared: &Arc<Shared>) -> coracle_cri::Result<()> {
    let known = pods(shared.host.runtime.as_ref()).await?;
    let orphans = known.iter().filter(|pod| !shared.roster.knows(pod.uid()));
    join_all(orphans.map(|pod| end_pod(shared, pod)))
        .await
        .into_iter()
        .collect()
}

async fn end_pod(shared: &Arc<Shared>, pod: &Pod) -> coracle_cri::Result<()> {
    tracing::info!(pod = %pod.id(), "nobody knows this pod: it is ended");
    let runtime = shared.host.runtime.as_ref();
    let ending = Ending {
        runtime,
        hooks: shared.hooks.as_ref(),
        usual: GRACE,
        most: Duration::MAX,
    };

    for sandbox in ending.end_containers(pod).await?.sandboxes {
        runtime.remove_pod_sandbox(&sandbox.id).await?;
    }

    Ok(())
}

/// Whether all went.
async fn remove_logs(shared: &Shared) -> bool {
    let (layout, roster) = (shared.host.layout.clone(), shared.roster.clone());
    blocking(move || {
        let removed = remove_logs_of_unknown(&layout, &roster);
        let unlinked = logs::remove_dangling(&layout);
        if let Err(error) = &unlinked {
            tracing::warn!(%error, "links to logs are not removed");
        }
        removed && unlinked.is_ok()
    })
    .await
}

fn remove_logs_of_unknown(layout: &Layout, roster: &Roster) -> bool {
    let mut all = true;
    for entry in std::fs::read_dir(layout.pod_logs())
        .into_iter()
        .flatten()
        .flatten()
    {
        let name = entry.file_name().to_string_lossy().into_owned();
        let uid = name.rsplit('_').next().unwrap_or_default();
        if !roster.knows(uid)
            && let Err(error) = remove_tree(&entry.path())
        {
            tracing::warn!(folder = %entry.path().display(), %error, "logs are not removed");
            all = false;
        }
    }

    all
}
