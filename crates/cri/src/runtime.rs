//! The pods and containers of a node.

use std::pin::Pin;
use std::time::Duration;

use async_trait::async_trait;
use tokio_stream::Stream;

use crate::error::Result;
use crate::streaming::{PortStream, Streaming};
use crate::v1::{
    AttachRequest, CgroupDriver, Container, ContainerConfig, ContainerEventResponse,
    ContainerFilter, ContainerStats, ContainerStatsFilter, ContainerStatusResponse, ExecRequest,
    ExecSyncResponse, LinuxContainerResources, PodSandbox, PodSandboxConfig, PodSandboxFilter,
    PodSandboxStats, PodSandboxStatsFilter, PodSandboxStatusResponse, RuntimeConfig,
    StatusResponse, VersionResponse,
};

/// What happened to containers, from the moment of the call on.
pub type Events = Pin<Box<dyn Stream<Item = Result<ContainerEventResponse>> + Send>>;

/// Pods and containers: made, started, watched, stopped, removed.
///
/// # Guarantees
/// Stopping and removing is idempotent: what is gone is stopped, and removed. What a runtime
/// acknowledged it still knows after a restart of its own. A sandbox that could not be made leaves
/// nothing behind.
#[async_trait]
pub trait Runtime: Send + Sync {
    async fn version(&self) -> Result<VersionResponse>;

    /// Whether pods can run, and whether they can have a network; with `verbose`, what else there
    /// is to tell.
    async fn status(&self, verbose: bool) -> Result<StatusResponse>;

    /// Who makes the cgroups of pods, and how they are named.
    async fn cgroup_driver(&self) -> Result<CgroupDriver>;

    /// Tells the runtime what it could not know before, such as the pods' address range.
    async fn update_runtime_config(&self, config: RuntimeConfig) -> Result<()>;

    /// Makes a pod's namespaces and network, and answers with its id.
    async fn run_pod_sandbox(&self, config: PodSandboxConfig, handler: &str) -> Result<String>;

    /// Ends what still runs in the pod and gives its addresses back.
    async fn stop_pod_sandbox(&self, sandbox: &str) -> Result<()>;

    /// Stops the pod and removes it with its containers.
    async fn remove_pod_sandbox(&self, sandbox: &str) -> Result<()>;

    async fn pod_sandbox_status(
        &self,
        sandbox: &str,
        verbose: bool,
    ) -> Result<PodSandboxStatusResponse>;

    /// The pods that pass the filter. An empty one lets all pass.
    async fn list_pod_sandbox(&self, filter: PodSandboxFilter) -> Result<Vec<PodSandbox>>;

    async fn update_pod_sandbox_resources(
        &self,
        sandbox: &str,
        overhead: Option<LinuxContainerResources>,
        resources: Option<LinuxContainerResources>,
    ) -> Result<()>;

    /// Prepares a container in a pod, and answers with its id. Nothing runs yet.
    async fn create_container(
        &self,
        sandbox: &str,
        config: ContainerConfig,
        sandbox_config: PodSandboxConfig,
    ) -> Result<String>;

    /// Starts a created container; once only.
    async fn start_container(&self, container: &str) -> Result<()>;

    /// Asks a container to end, and makes it end when `grace` is over.
    async fn stop_container(&self, container: &str, grace: Duration) -> Result<()>;

    /// Removes a container with its files. One that runs is killed first.
    async fn remove_container(&self, container: &str) -> Result<()>;

    async fn container_status(
        &self,
        container: &str,
        verbose: bool,
    ) -> Result<ContainerStatusResponse>;

    /// The containers that pass the filter. An empty one lets all pass.
    async fn list_containers(&self, filter: ContainerFilter) -> Result<Vec<Container>>;

    async fn update_container_resources(
        &self,
        container: &str,
        resources: LinuxContainerResources,
    ) -> Result<()>;

    /// Goes on writing the log into a new file at the same path: somebody has moved the old one
    /// away.
    async fn reopen_container_log(&self, container: &str) -> Result<()>;

    /// Runs a command to its end and answers with what it printed. Without a timeout it may take
    /// for ever.
    async fn exec_sync(
        &self,
        container: &str,
        command: Vec<String>,
        timeout: Option<Duration>,
    ) -> Result<ExecSyncResponse>;

    async fn exec(&self, request: ExecRequest) -> Result<Streaming>;

    async fn attach(&self, request: AttachRequest) -> Result<Streaming>;

    /// Reaches one port on the pod's loopback.
    async fn port_forward(&self, sandbox: &str, port: u16) -> Result<PortStream>;

    async fn container_stats(&self, container: &str) -> Result<ContainerStats>;

    async fn list_container_stats(
        &self,
        filter: ContainerStatsFilter,
    ) -> Result<Vec<ContainerStats>>;

    async fn pod_sandbox_stats(&self, sandbox: &str) -> Result<PodSandboxStats>;

    async fn list_pod_sandbox_stats(
        &self,
        filter: PodSandboxStatsFilter,
    ) -> Result<Vec<PodSandboxStats>>;

    /// Containers created, started, stopped and deleted, as it happens. Who reads too slowly gets
    /// an error and has to look at everything anew.
    async fn container_events(&self) -> Result<Events>;
}
