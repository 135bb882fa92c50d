//! Ends the pods of a machine while nobody serves its API. What is known of them stays: whoever
//! comes back finds how they ended, and their logs.

use std::sync::Arc;
use std::time::Duration;

use coracle_client::World;
use coracle_cri::{Error, Runtime};
use futures_util::future::join_all;
use k8s_openapi::api::core::v1::Pod;

use crate::ending::{Ending, pods};
use crate::hooks::ContainerHooks;

/// What a pod has that does not say.
const USUAL: Duration = Duration::from_secs(30);

/// Ends all pods, side by side, each within the time that it asked for and `most`; how many there
/// were. One that cannot be ended is the error, after all others were.
///
/// # Errors
/// If the runtime cannot say what there is, or cannot end one.
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

/// Whether it ran.
async fn end(ending: &Ending<'_>, pod: &Pod) -> Result<bool, Error> {
    let observed = ending.end_containers(pod).await?;
    for sandbox in &observed.sandboxes {
        ending.runtime.stop_pod_sandbox(&sandbox.id).await?;
    }
    Ok(observed.ready_sandbox().is_some())
}
