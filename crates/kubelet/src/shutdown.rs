//! Terminates all pods of a node while no API server runs. Exited containers and logs stay, so that
//! the next kubelet reports how the pods ended.

use std::sync::Arc;
use std::time::Duration;

use coracle_client::World;
use coracle_cri::{Error, Runtime};
use futures_util::future::join_all;
use k8s_openapi::api::core::v1::Pod;

use crate::hooks::HookRunner;
use crate::terminate::{Terminator, pods};

/// Default grace period.
const DEFAULT_GRACE: Duration = Duration::from_secs(30);

/// Terminates all pods at the same time, each within its own grace period and `max_grace`; returns
/// how many ran. If one cannot be terminated, the error is returned after all others were.
///
/// # Errors
/// If the runtime cannot list or terminate pods.
pub async fn terminate_all(
    runtime: Arc<dyn Runtime>,
    world: World,
    max_grace: Duration,
) -> Result<usize, Error> {
    let hooks = HookRunner::without_events(runtime.clone(), world);
    let terminator = Terminator {
        runtime: &*runtime,
        hooks: &hooks,
        default_grace: DEFAULT_GRACE,
        max_grace,
    };

    let pods = pods(&*runtime).await?;
    let ended = join_all(pods.iter().map(|pod| terminate(&terminator, pod))).await;
    let running = ended.into_iter().collect::<Result<Vec<bool>, Error>>()?;

    Ok(running
        .into_iter()
        .filter(|was_running| *was_running)
        .count())
}

/// Returns whether it ran.
async fn terminate(terminator: &Terminator<'_>, pod: &Pod) -> Result<bool, Error> {
    let observed = terminator.terminate_containers(pod).await?;
    for sandbox in &observed.sandboxes {
        terminator.runtime.stop_pod_sandbox(&sandbox.id).await?;
    }
    Ok(observed.ready_sandbox().is_some())
}
