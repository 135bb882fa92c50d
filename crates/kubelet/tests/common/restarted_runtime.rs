//! A runtime that has lost its configuration, as after a restart.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use coracle_cri::streaming::{PortStream, Streaming};
use coracle_cri::v1::*;
use coracle_cri::{Events, Result, Runtime};

/// Time to set up the network: longer than a kubelet takes to sync its pods.
const SETUP_TIME: Duration = Duration::from_millis(500);

/// Has no network until it receives pod CIDRs.
pub(crate) struct RestartedRuntime {
    inner: Arc<dyn Runtime>,
    /// Whether its network is ready then.
    recovers: bool,
    has_config: AtomicBool,
}

impl RestartedRuntime {
    pub(crate) fn over(inner: Arc<dyn Runtime>, recovers: bool) -> RestartedRuntime {
        RestartedRuntime {
            inner,
            recovers,
            has_config: AtomicBool::new(false),
        }
    }
}

#[async_trait]
impl Runtime for RestartedRuntime {
    async fn status(&self, verbose: bool) -> Result<StatusResponse> {
        let mut answer = self.inner.status(verbose).await?;
        if !(self.recovers && self.has_config.load(Ordering::Acquire)) {
            let conditions = answer
                .status
                .iter_mut()
                .flat_map(|status| &mut status.conditions);
            for condition in conditions.filter(|condition| condition.r#type == "NetworkReady") {
                condition.status = false;
                "this node has no pod CIDR yet".clone_into(&mut condition.message);
            }
        }

        Ok(answer)
    }

    async fn update_runtime_config(&self, _config: RuntimeConfig) -> Result<()> {
        tokio::time::sleep(SETUP_TIME).await;
        self.has_config.store(true, Ordering::Release);
        Ok(())
    }

    async fn version(&self) -> Result<VersionResponse> {
        self.inner.version().await
    }

    async fn cgroup_driver(&self) -> Result<CgroupDriver> {
        self.inner.cgroup_driver().await
    }

    async fn run_pod_sandbox(&self, config: PodSandboxConfig, handler: &str) -> Result<String> {
        self.inner.run_pod_sandbox(config, handler).await
    }

    async fn stop_pod_sandbox(&self, sandbox: &str) -> Result<()> {
        self.inner.stop_pod_sandbox(sandbox).await
    }

    async fn remove_pod_sandbox(&self, sandbox: &str) -> Result<()> {
        self.inner.remove_pod_sandbox(sandbox).await
    }

    async fn pod_sandbox_status(
        &self,
        sandbox: &str,
        verbose: bool,
    ) -> Result<PodSandboxStatusResponse> {
        self.inner.pod_sandbox_status(sandbox, verbose).await
    }

    async fn list_pod_sandbox(&self, filter: PodSandboxFilter) -> Result<Vec<PodSandbox>> {
        self.inner.list_pod_sandbox(filter).await
    }

    async fn update_pod_sandbox_resources(
        &self,
        sandbox: &str,
        overhead: Option<LinuxContainerResources>,
        resources: Option<LinuxContainerResources>,
    ) -> Result<()> {
        self.inner
            .update_pod_sandbox_resources(sandbox, overhead, resources)
            .await
    }

    async fn create_container(
        &self,
        sandbox: &str,
        config: ContainerConfig,
        sandbox_config: PodSandboxConfig,
    ) -> Result<String> {
        self.inner
            .create_container(sandbox, config, sandbox_config)
            .await
    }

    async fn start_container(&self, container: &str) -> Result<()> {
        self.inner.start_container(container).await
    }

    async fn stop_container(&self, container: &str, grace: Duration) -> Result<()> {
        self.inner.stop_container(container, grace).await
    }

    async fn remove_container(&self, container: &str) -> Result<()> {
        self.inner.remove_container(container).await
    }

    async fn container_status(
        &self,
        container: &str,
        verbose: bool,
    ) -> Result<ContainerStatusResponse> {
        self.inner.container_status(container, verbose).await
    }

    async fn list_containers(&self, filter: ContainerFilter) -> Result<Vec<Container>> {
        self.inner.list_containers(filter).await
    }

    async fn update_container_resources(
        &self,
        container: &str,
        resources: LinuxContainerResources,
    ) -> Result<()> {
        self.inner
            .update_container_resources(container, resources)
            .await
    }

    async fn reopen_container_log(&self, container: &str) -> Result<()> {
        self.inner.reopen_container_log(container).await
    }

    async fn exec_sync(
        &self,
        container: &str,
        command: Vec<String>,
        timeout: Option<Duration>,
    ) -> Result<ExecSyncResponse> {
        self.inner.exec_sync(container, command, timeout).await
    }

    async fn exec(&self, request: ExecRequest) -> Result<Streaming> {
        self.inner.exec(request).await
    }

    async fn attach(&self, request: AttachRequest) -> Result<Streaming> {
        self.inner.attach(request).await
    }

    async fn port_forward(&self, sandbox: &str, port: u16) -> Result<PortStream> {
        self.inner.port_forward(sandbox, port).await
    }

    async fn container_stats(&self, container: &str) -> Result<ContainerStats> {
        self.inner.container_stats(container).await
    }

    async fn list_container_stats(
        &self,
        filter: ContainerStatsFilter,
    ) -> Result<Vec<ContainerStats>> {
        self.inner.list_container_stats(filter).await
    }

    async fn pod_sandbox_stats(&self, sandbox: &str) -> Result<PodSandboxStats> {
        self.inner.pod_sandbox_stats(sandbox).await
    }

    async fn list_pod_sandbox_stats(
        &self,
        filter: PodSandboxStatsFilter,
    ) -> Result<Vec<PodSandboxStats>> {
        self.inner.list_pod_sandbox_stats(filter).await
    }

    async fn container_events(&self) -> Result<Events> {
        self.inner.container_events().await
    }
}
