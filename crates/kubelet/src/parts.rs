//! What a pod needs besides containers, done elsewhere in this crate: volumes, environment, probes,
//! hooks.
//!
//! The workers of pods call these; each is handed in where a kubelet is assembled.

use std::sync::Arc;

use async_trait::async_trait;
use coracle_api::Text;
use coracle_api::time::Timestamp;
use coracle_cri::v1::Mount;
use k8s_openapi::api::core::v1::{Container, Pod};
use tokio::sync::mpsc;

use crate::observed::Observed;
use crate::roster::Roster;

/// The volumes of pods.
#[async_trait]
pub trait Volumes: Send + Sync {
    /// Makes all volumes of a pod that its containers mount, or brings what is in them up to date.
    /// Called again on every sync, and when [`MountedVolumes::renew_at`] has come.
    async fn mount(&self, pod: &Pod) -> Result<MountedVolumes, VolumeError>;

    /// What the runtime is to mount into a container that is about to be made, in the order of its
    /// `volumeMounts`. Paths below volumes (`subPath`, `subPathExpr`) are prepared here, with the
    /// container's environment. The pod's volumes are mounted.
    async fn bind(
        &self,
        pod: &Pod,
        container: &Container,
        environment: &[(String, String)],
    ) -> Result<Vec<Mount>, BindError>;

    /// Takes all volumes of a pod away, by what is on the disk: the pod itself may be gone.
    /// Idempotent.
    async fn unmount(&self, uid: &str) -> Result<(), VolumeError>;

    /// Takes away the volumes and the folders of all pods on the disk that the roster does not
    /// know.
    async fn clean_up(&self, roster: &Roster) -> Result<(), VolumeError>;
}

/// The volumes of a pod are there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MountedVolumes {
    /// When something in them ceases to be valid (a token): they are to be mounted again before.
    pub renew_at: Option<Timestamp>,
}

/// Why volumes are not there, or not gone: of each that fails, the text of an event `FailedMount`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", failures.join("; "))]
pub struct VolumeError {
    pub failures: Vec<String>,
}

/// Why a container cannot have its mounts: it waits with `CreateContainerConfigError` and this
/// text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BindError(pub String);

/// The environment of containers.
#[async_trait]
pub trait Environments: Send + Sync {
    /// Variables of a container, in order, expanded. `pod_ips` are those of the pod's sandbox, or
    /// of the host where the pod has its network.
    async fn environment(
        &self,
        pod: &Pod,
        container: &Container,
        pod_ips: &[String],
    ) -> Result<Vec<(String, String)>, EnvError>;
}

/// Why there is no environment: the container waits with `CreateContainerConfigError` and this
/// text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EnvError(pub String);

/// Which question a probe asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProbeKind {
    Startup,
    Liveness,
    Readiness,
}

/// A probe's answer has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeResult {
    pub uid: Text,
    pub container: Text,
    /// The instance that was asked.
    pub container_id: Text,
    pub kind: ProbeKind,
    pub passed: bool,
}

/// The probes of containers.
pub trait Probes: Send + Sync {
    /// Asks the containers of a pod that run, and those alone. Called whenever a pod or its
    /// containers have changed.
    fn follow(&self, pod: &Arc<Pod>, observed: &Observed);

    /// The pod ends: nobody asks any more whether it has started or lives, only whether it is
    /// ready.
    fn end(&self, uid: &str);

    /// The pod is gone.
    fn forget(&self, uid: &str);

    /// Whether a running container is ready: it has no probe, or the last answers said so.
    fn is_ready(&self, uid: &str, container: &str) -> bool;

    /// Whether a running container has started: it has no startup probe, or that has passed.
    fn is_started(&self, uid: &str, container: &str) -> bool;

    /// Whether this instance of a container is to be killed because a probe says that it does not
    /// live.
    fn has_failed(&self, uid: &str, container_id: &str) -> Option<ProbeKind>;
}

/// Answers that have changed; the receiver's end of what [`Probes`] find out.
pub type ProbeResults = mpsc::Receiver<ProbeResult>;

/// The hooks of containers.
#[async_trait]
pub trait Hooks: Send + Sync {
    /// Runs `lifecycle.postStart` of a container that has just begun; no hook is success.
    async fn run_post_start(
        &self,
        pod: &Pod,
        container: &Container,
        container_id: &str,
        pod_ips: &[String],
    ) -> Result<(), HookError>;

    /// Runs `lifecycle.preStop`. Whoever calls drops it when the grace period is over.
    async fn run_pre_stop(
        &self,
        pod: &Pod,
        container: &Container,
        container_id: &str,
        pod_ips: &[String],
    ) -> Result<(), HookError>;
}

/// Why a hook did not succeed: the message of a container that waits with `PostStartHookError`.
/// Events do not say it, as it may hold what a server answered: `PostStartHook failed`,
/// `PreStopHook failed`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HookError(pub String);
