//! The runtime service.

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

/// Container events from the time of the call.
pub type Events = Pin<Box<dyn Stream<Item = Result<ContainerEventResponse>> + Send>>;

/// The runtime service: pod sandboxes and containers.
///
/// # Guarantees
/// Stop and remove are idempotent, also for objects that no longer exist. Acknowledged state
/// survives a restart of the runtime. A sandbox that could not be created leaves nothing behind.
#[async_trait]
pub trait Runtime: Send + Sync {
    async fn version(&self) -> Result<VersionResponse>;

    /// Whether the runtime and the network are ready; `verbose` adds further information.
    async fn status(&self, verbose: bool) -> Result<StatusResponse>;

    /// The cgroup driver.
    async fn cgroup_driver(&self) -> Result<CgroupDriver>;

    /// Updates configuration that is known only later, such as the pod CIDR.
    async fn update_runtime_config(&self, config: RuntimeConfig) -> Result<()>;

    /// Creates a pod's namespaces and network, and returns the sandbox ID.
    async fn run_pod_sandbox(&self, config: PodSandboxConfig, handler: &str) -> Result<String>;

    /// Stops all containers of the pod and releases its addresses.
    async fn stop_pod_sandbox(&self, sandbox: &str) -> Result<()>;

    /// Stops the pod and removes it with its containers.
    async fn remove_pod_sandbox(&self, sandbox: &str) -> Result<()>;

    async fn pod_sandbox_status(
        &self,
        sandbox: &str,
        verbose: bool,
    ) -> Result<PodSandboxStatusResponse>;

    /// Lists sandboxes; an empty filter selects all.
    async fn list_pod_sandbox(&self, filter: PodSandboxFilter) -> Result<Vec<PodSandbox>>;

    async fn update_pod_sandbox_resources(
        &self,
        sandbox: &str,
        overhead: Option<LinuxContainerResources>,
        resources: Option<LinuxContainerResources>,
    ) -> Result<()>;

    /// Creates a container in a pod without starting it, and returns its ID.
    async fn create_container(
        &self,
        sandbox: &str,
        config: ContainerConfig,
        sandbox_config: PodSandboxConfig,
    ) -> Result<String>;

    /// Starts a created container; only once.
    async fn start_container(&self, container: &str) -> Result<()>;

    /// Stops a container: signals it, and kills it after `grace`.
    async fn stop_container(&self, container: &str, grace: Duration) -> Result<()>;

    /// Removes a container with its files, killing it if it runs.
    async fn remove_container(&self, container: &str) -> Result<()>;

    async fn container_status(
        &self,
        container: &str,
        verbose: bool,
    ) -> Result<ContainerStatusResponse>;

    /// Lists containers; an empty filter selects all.
    async fn list_containers(&self, filter: ContainerFilter) -> Result<Vec<Container>>;

    async fn update_container_resources(
        &self,
        container: &str,
        resources: LinuxContainerResources,
    ) -> Result<()>;

    /// Reopens the log file at the same path, after it was rotated.
    async fn reopen_container_log(&self, container: &str) -> Result<()>;

    /// Runs a command to completion and returns its output. Without a timeout it may run forever.
    async fn exec_sync(
        &self,
        container: &str,
        command: Vec<String>,
        timeout: Option<Duration>,
    ) -> Result<ExecSyncResponse>;

    async fn exec(&self, request: ExecRequest) -> Result<Streaming>;

    async fn attach(&self, request: AttachRequest) -> Result<Streaming>;

    /// Connects to a port on the pod's loopback.
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

    /// Container events. A slow reader gets an error and must list everything again.
    async fn container_events(&self) -> Result<Events>;
}
