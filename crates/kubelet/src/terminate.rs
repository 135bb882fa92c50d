//! Terminates the containers of a pod whose spec is no longer available, by the hook, signal and
//! grace period stored in container annotations ([`crate::spec::labels`]).

use std::time::Duration;

use coracle_cri::v1::{PodSandbox, PodSandboxFilter};
use coracle_cri::{Error, Runtime};
use futures_util::future::join_all;
use k8s_openapi::api::core::v1::{Container, Lifecycle, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use tokio::time::{Instant, timeout_at};

use crate::hooks::HookRunner;
use crate::observe::observe;
use crate::observed::{Observed, ObservedContainer};
use crate::pod::PodView as _;
use crate::spec::labels::{POD_NAME, POD_NAMESPACE, POD_UID};

/// Lower bound of a non-zero grace period, so that a container can handle the signal.
const MIN_GRACE: Duration = Duration::from_secs(2);

/// Upper bound of every grace period.
const MAX_GRACE: Duration = Duration::from_hours(24);

/// Terminates containers.
pub(crate) struct Terminator<'a> {
    pub(crate) runtime: &'a dyn Runtime,
    pub(crate) hooks: &'a HookRunner,
    /// Grace period of a container whose pod does not set one.
    pub(crate) default_grace: Duration,
    /// Upper bound of grace periods; zero: containers are killed at once.
    pub(crate) max_grace: Duration,
}

/// The pods in the runtime that have a kubelet's labels, with the metadata that these hold.
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

impl Terminator<'_> {
    /// Terminates the containers of a pod, all at the same time. The sandboxes stay.
    pub(crate) async fn terminate_containers(&self, pod: &Pod) -> Result<Observed, Error> {
        let observed = observe(self.runtime, pod.uid()).await?;
        let addresses = observed
            .ready_sandbox()
            .map(|sandbox| sandbox.addresses.clone())
            .unwrap_or_default();

        let stops = observed
            .running()
            .map(|seen| self.terminate_container(pod, seen, &addresses));
        for stopped in join_all(stops).await {
            stopped?;
        }

        Ok(observed)
    }

    async fn terminate_container(
        &self,
        pod: &Pod,
        seen: &ObservedContainer,
        addresses: &[String],
    ) -> Result<(), Error> {
        let grace = self.grace(seen);
        let until = Instant::now() + grace;
        if !grace.is_zero() {
            let container = container_of(seen);
            let ran = self
                .hooks
                .run_pre_stop(pod, &container, &seen.id, addresses);
            // The container is stopped whether or not the hook succeeded.
            if let Ok(Err(error)) = timeout_at(until, ran).await {
                tracing::warn!(pod = %pod.id(), container = seen.name, %error, "preStop hook failed");
            }
        }

        let left = until
            .saturating_duration_since(Instant::now())
            .max(MIN_GRACE.min(grace));
        match self.runtime.stop_container(&seen.id, left).await {
            Err(Error::NotFound(_)) => Ok(()),
            other => other,
        }
    }

    fn grace(&self, seen: &ObservedContainer) -> Duration {
        let own = seen
            .grace()
            .map(|seconds| Duration::from_secs(u64::try_from(seconds).unwrap_or_default()));
        own.unwrap_or(self.default_grace)
            .min(self.max_grace)
            .min(MAX_GRACE)
    }
}

/// The container as the hook needs it.
fn container_of(seen: &ObservedContainer) -> Container {
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
    fn a_container_is_restored_from_its_annotations() {
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

        let seen = ObservedContainer::of(&ContainerStatus {
            annotations,
            ..ContainerStatus::default()
        });
        container.name = seen.name.clone();

        assert_eq!(container_of(&seen), container);

        let nothing = ObservedContainer::of(&ContainerStatus::default());
        assert_eq!(
            container_of(&nothing),
            Container {
                name: nothing.name.clone(),
                ..Container::default()
            }
        );
    }
}
