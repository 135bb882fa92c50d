//! Ends the containers of a pod whose spec nobody has any more: by the hook, the signal and the
//! grace period that were written down with them ([`crate::spec::labels`]).

use std::time::Duration;

use coracle_cri::v1::{PodSandbox, PodSandboxFilter};
use coracle_cri::{Error, Runtime};
use futures_util::future::join_all;
use k8s_openapi::api::core::v1::{Container, Lifecycle, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use tokio::time::{Instant, timeout_at};

use crate::observe::observe;
use crate::observed::{Observed, Seen};
use crate::parts::Hooks;
use crate::pod::PodView as _;
use crate::spec::labels::{POD_NAME, POD_NAMESPACE, POD_UID};

/// What a container that has time has at least: enough to hear of it.
const LEAST: Duration = Duration::from_secs(2);

/// Nobody waits longer, whatever a pod asks for.
const LONGEST: Duration = Duration::from_hours(24);

/// What ends containers.
pub(crate) struct Ending<'a> {
    pub(crate) runtime: &'a dyn Runtime,
    pub(crate) hooks: &'a dyn Hooks,
    /// How long a container may take whose pod never said.
    pub(crate) usual: Duration,
    /// How long one may take whatever its pod said; zero: it is killed.
    pub(crate) most: Duration,
}

/// The pods that the runtime knows of by the labels of a kubelet, each as far as these tell.
pub(crate) async fn pods(runtime: &dyn Runtime) -> Result<Vec<Pod>, Error> {
    let sandboxes = runtime
        .list_pod_sandbox(PodSandboxFilter::default())
        .await?;
    let mut pods: Vec<Pod> = sandboxes.iter().filter_map(pod).collect();
    pods.sort_by(|one, other| one.uid().cmp(other.uid()));
    // A pod may have had several sandboxes.
    pods.dedup_by(|one, other| one.uid() == other.uid());
    Ok(pods)
}

fn pod(sandbox: &PodSandbox) -> Option<Pod> {
    let label = |name: &str| sandbox.labels.get(name).cloned();
    let metadata = ObjectMeta {
        uid: Some(label(POD_UID)?),
        name: label(POD_NAME),
        namespace: label(POD_NAMESPACE),
        ..ObjectMeta::default()
    };
    Some(Pod {
        metadata,
        ..Pod::default()
    })
}

impl Ending<'_> {
    /// Ends the containers of a pod, side by side. Its sandboxes stay.
    pub(crate) async fn end_containers(&self, pod: &Pod) -> Result<Observed, Error> {
        let observed = observe(self.runtime, pod.uid()).await?;
        let addresses = observed
            .ready_sandbox()
            .map(|sandbox| sandbox.addresses.clone())
            .unwrap_or_default();

        let stops = observed
            .running()
            .map(|seen| self.end_container(pod, seen, &addresses));
        for stopped in join_all(stops).await {
            stopped?;
        }

        Ok(observed)
    }

    async fn end_container(
        &self,
        pod: &Pod,
        seen: &Seen,
        addresses: &[String],
    ) -> Result<(), Error> {
        let grace = self.grace(seen);
        let until = Instant::now() + grace;
        if !grace.is_zero() {
            let container = remembered(seen);
            let ran = self
                .hooks
                .run_pre_stop(pod, &container, &seen.id, addresses);
            // However it went, the container ends now.
            if let Ok(Err(error)) = timeout_at(until, ran).await {
                tracing::warn!(pod = %pod.id(), container = seen.name, %error, "the hook before its end failed");
            }
        }

        let left = until
            .saturating_duration_since(Instant::now())
            .max(LEAST.min(grace));
        match self.runtime.stop_container(&seen.id, left).await {
            Err(Error::NotFound(_)) => Ok(()),
            other => other,
        }
    }

    fn grace(&self, seen: &Seen) -> Duration {
        let own = seen
            .grace()
            .map(|seconds| Duration::from_secs(u64::try_from(seconds).unwrap_or_default()));
        own.unwrap_or(self.usual).min(self.most).min(LONGEST)
    }
}

/// A container as far as its hook has to know it.
fn remembered(seen: &Seen) -> Container {
    Container {
        name: seen.name.clone(),
        ports: seen.ports(),
        lifecycle: seen.pre_stop().map(|hook| Lifecycle {
            pre_stop: Some(hook),
            ..Lifecycle::default()
        }),
        ..Container::default()
    }
}

#[cfg(test)]
mod tests {
    use coracle_cri::v1::ContainerStatus;
    use k8s_openapi::api::core::v1::{ContainerPort, ExecAction, LifecycleHandler};

    use super::*;
    use crate::spec::labels;

    #[test]
    fn what_was_written_down_is_read_back() {
        let exec = ExecAction {
            command: Some(vec!["/bye".to_owned()]),
        };
        let pre_stop = LifecycleHandler {
            exec: Some(exec),
            ..LifecycleHandler::default()
        };

        let mut container = Container {
            ports: Some(vec![ContainerPort {
                container_port: 80,
                ..ContainerPort::default()
            }]),
            lifecycle: Some(Lifecycle {
                pre_stop: Some(pre_stop),
                ..Lifecycle::default()
            }),
            ..Container::default()
        };
        let annotations = labels::annotations(&Pod::default(), &container, 0);

        let seen = Seen::of(&ContainerStatus {
            annotations,
            ..ContainerStatus::default()
        });
        container.name = seen.name.clone();

        assert_eq!(remembered(&seen), container);

        let nothing = Seen::of(&ContainerStatus::default());
        assert_eq!(
            remembered(&nothing),
            Container {
                name: nothing.name.clone(),
                ..Container::default()
            }
        );
    }
}
