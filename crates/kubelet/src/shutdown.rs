//! Terminates all pods of a node while no API server runs. Exited containers and logs stay, so that
//! the next kubelet reports how the pods ended.

use std::sync::Arc;
use std::time::Duration;

use coracle_client::World;
use coracle_cri::{Error, Runtime};
use futures_util::future::join_all;
use k8s_openapi::api::core::v1::Pod;

use crate::ending::{Ending, pods};
use crate::hooks::ContainerHooks;

/// Default grace period.
const USUAL: Duration = Duration::from_secs(30);

/// Terminates all pods at the same time, each within its own grace period and `most`; returns how
/// many ran. If one cannot be terminated, the error is returned after all others were.
///
/// # Errors
/// If the runtime cannot list or terminate pods.
pub async fn end_all(
    runtime: Arc<dyn Runtime>,
    world: World,
    most: Duration,
) -> Result<usize, Error> {
    let hooks = ContainerHooks::unheard(runtime.clone(), world);
    let ending = Ending {
        runtime: &*runtime,
        hooks: &hooks,
        usual: USUAL,
        most,
    };

    let pods = pods(&*runtime).await?;
    let ended = join_all(pods.iter().map(|pod| end(&ending, pod))).await;
    let running = ended.into_iter().collect::<Result<Vec<bool>, Error>>()?;

    Ok(running
        .into_iter()
        .filter(|was_running| *was_running)
        .count())
}

/// Returns whether it ran.
async fn end(ending: &Ending<'_>, pod: &Pod) -> Result<bool, Error> {
    let observed = ending.end_containers(pod).await?;
    for sandbox in &observed.sandboxes {
        ending.runtime.stop_pod_sandbox(&sandbox.id).await?;
    }
    Ok(observed.ready_sandbox().is_some())
}
