//! The runtime service over gRPC.

use std::time::Duration;

use async_trait::async_trait;
use tokio_stream::StreamExt as _;

use super::Client;
use crate::error::{Error, Result};
use crate::runtime::{Events, Runtime};
use crate::streaming::{PortStream, Streaming};
use crate::v1::*;

#[async_trait]
impl Runtime for Client {
    async fn version(&self) -> Result<VersionResponse> {
        // The kubelet's constant API version.
        let request = VersionRequest {
            version: "0.1.0".to_owned(),
        };
        Ok(self.runtime.clone().version(request).await?.into_inner())
    }

    async fn status(&self, verbose: bool) -> Result<StatusResponse> {
        Ok(self
            .runtime
            .clone()
            .status(StatusRequest { verbose })
            .await?
            .into_inner())
    }

    async fn cgroup_driver(&self) -> Result<CgroupDriver> {
        let answer = self
            .runtime
            .clone()
            .runtime_config(RuntimeConfigRequest {})
            .await?
            .into_inner();
        let linux = answer.linux.ok_or_else(|| {
            Error::Internal("the RuntimeConfig response has no Linux configuration".to_owned())
        })?;
        Ok(linux.cgroup_driver())
    }

    async fn update_runtime_config(&self, config: RuntimeConfig) -> Result<()> {
        let request = UpdateRuntimeConfigRequest {
            runtime_config: Some(config),
        };
        self.runtime.clone().update_runtime_config(request).await?;
        Ok(())
    }

    async fn run_pod_sandbox(&self, config: PodSandboxConfig, handler: &str) -> Result<String> {
        let request = RunPodSandboxRequest {
            config: Some(config),
            runtime_handler: handler.to_owned(),
        };
        Ok(self
            .runtime
            .clone()
            .run_pod_sandbox(request)
            .await?
            .into_inner()
            .pod_sandbox_id)
    }

    async fn stop_pod_sandbox(&self, sandbox: &str) -> Result<()> {
        let request = StopPodSandboxRequest {
            pod_sandbox_id: sandbox.to_owned(),
        };
        gone_is_fine(
            self.runtime
                .clone()
                .stop_pod_sandbox(request)
                .await
                .map(drop),
        )
    }

    async fn remove_pod_sandbox(&self, sandbox: &str) -> Result<()> {
        let request = RemovePodSandboxRequest {
            pod_sandbox_id: sandbox.to_owned(),
        };
        gone_is_fine(
            self.runtime
                .clone()
                .remove_pod_sandbox(request)
                .await
                .map(drop),
        )
    }

    async fn pod_sandbox_status(
        &self,
        sandbox: &str,
        verbose: bool,
    ) -> Result<PodSandboxStatusResponse> {
        let request = PodSandboxStatusRequest {
            pod_sandbox_id: sandbox.to_owned(),
            verbose,
        };
        Ok(self
            .runtime
            .clone()
            .pod_sandbox_status(request)
            .await?
            .into_inner())
    }

    async fn list_pod_sandbox(&self, filter: PodSandboxFilter) -> Result<Vec<PodSandbox>> {
        let request = ListPodSandboxRequest {
            filter: Some(filter),
        };
        Ok(self
            .runtime
            .clone()
            .list_pod_sandbox(request)
            .await?
            .into_inner()
            .items)
    }

    async fn update_pod_sandbox_resources(
        &self,
        sandbox: &str,
        overhead: Option<LinuxContainerResources>,
        resources: Option<LinuxContainerResources>,
    ) -> Result<()> {
        let pod_sandbox_id = sandbox.to_owned();
        let request = UpdatePodSandboxResourcesRequest {
            pod_sandbox_id,
            overhead,
            resources,
        };
        self.runtime
            .clone()
            .update_pod_sandbox_resources(request)
            .await?;
        Ok(())
    }

    async fn create_container(
        &self,
        sandbox: &str,
        config: ContainerConfig,
        sandbox_config: PodSandboxConfig,
    ) -> Result<String> {
        let request = CreateContainerRequest {
            pod_sandbox_id: sandbox.to_owned(),
            config: Some(config),
            sandbox_config: Some(sandbox_config),
        };

        Ok(self
            .runtime
            .clone()
            .create_container(request)
            .await?
            .into_inner()
            .container_id)
    }

    async fn start_container(&self, container: &str) -> Result<()> {
        let request = StartContainerRequest {
            container_id: container.to_owned(),
        };
        self.runtime.clone().start_container(request).await?;
        Ok(())
    }

    async fn stop_container(&self, container: &str, grace: Duration) -> Result<()> {
        let request = StopContainerRequest {
            container_id: container.to_owned(),
            timeout: whole_seconds(grace),
        };
        gone_is_fine(self.runtime.clone().stop_container(request).await.map(drop))
    }

    async fn remove_container(&self, container: &str) -> Result<()> {
        let request = RemoveContainerRequest {
            container_id: container.to_owned(),
        };
        gone_is_fine(
            self.runtime
                .clone()
                .remove_container(request)
                .await
                .map(drop),
        )
    }

    async fn container_status(
        &self,
        container: &str,
        verbose: bool,
    ) -> Result<ContainerStatusResponse> {
        let request = ContainerStatusRequest {
            container_id: container.to_owned(),
            verbose,
        };
        Ok(self
            .runtime
            .clone()
            .container_status(request)
            .await?
            .into_inner())
    }

    async fn list_containers(&self, filter: ContainerFilter) -> Result<Vec<Container>> {
        let request = ListContainersRequest {
            filter: Some(filter),
        };
        Ok(self
            .runtime
            .clone()
            .list_containers(request)
            .await?
            .into_inner()
            .containers)
    }

    async fn update_container_resources(
        &self,
        container: &str,
        resources: LinuxContainerResources,
    ) -> Result<()> {
        let request = UpdateContainerResourcesRequest {
            container_id: container.to_owned(),
            linux: Some(resources),
            ..Default::default()
        };
        self.runtime
            .clone()
            .update_container_resources(request)
            .await?;
        Ok(())
    }

    async fn reopen_container_log(&self, container: &str) -> Result<()> {
        let request = ReopenContainerLogRequest {
            container_id: container.to_owned(),
        };
        self.runtime.clone().reopen_container_log(request).await?;
        Ok(())
    }

    async fn exec_sync(
        &self,
        container: &str,
        command: Vec<String>,
        timeout: Option<Duration>,
    ) -> Result<ExecSyncResponse> {
        let request = ExecSyncRequest {
            container_id: container.to_owned(),
            cmd: command,
            timeout: timeout.map_or(0, whole_seconds),
        };
        Ok(self.runtime.clone().exec_sync(request).await?.into_inner())
    }

    async fn exec(&self, request: ExecRequest) -> Result<Streaming> {
        Ok(Streaming::Address(
            self.runtime.clone().exec(request).await?.into_inner().url,
        ))
    }

    async fn attach(&self, request: AttachRequest) -> Result<Streaming> {
        Ok(Streaming::Address(
            self.runtime.clone().attach(request).await?.into_inner().url,
        ))
    }

    async fn port_forward(&self, sandbox: &str, port: u16) -> Result<PortStream> {
        let request = PortForwardRequest {
            pod_sandbox_id: sandbox.to_owned(),
            port: vec![i32::from(port)],
        };

        Ok(PortStream::Address(
            self.runtime
                .clone()
                .port_forward(request)
                .await?
                .into_inner()
                .url,
        ))
    }

    async fn container_stats(&self, container: &str) -> Result<ContainerStats> {
        let request = ContainerStatsRequest {
            container_id: container.to_owned(),
        };
        let answer = self
            .runtime
            .clone()
            .container_stats(request)
            .await?
            .into_inner();

        answer
            .stats
            .ok_or_else(|| Error::NotFound(format!("no statistics of container {container:?}")))
    }

    async fn list_container_stats(
        &self,
        filter: ContainerStatsFilter,
    ) -> Result<Vec<ContainerStats>> {
        let request = ListContainerStatsRequest {
            filter: Some(filter),
        };
        Ok(self
            .runtime
            .clone()
            .list_container_stats(request)
            .await?
            .into_inner()
            .stats)
    }

    async fn pod_sandbox_stats(&self, sandbox: &str) -> Result<PodSandboxStats> {
        let request = PodSandboxStatsRequest {
            pod_sandbox_id: sandbox.to_owned(),
        };
        let answer = self
            .runtime
            .clone()
            .pod_sandbox_stats(request)
            .await?
            .into_inner();

        answer
            .stats
            .ok_or_else(|| Error::NotFound(format!("no statistics of sandbox {sandbox:?}")))
    }

    async fn list_pod_sandbox_stats(
        &self,
        filter: PodSandboxStatsFilter,
    ) -> Result<Vec<PodSandboxStats>> {
        let request = ListPodSandboxStatsRequest {
            filter: Some(filter),
        };
        Ok(self
            .runtime
            .clone()
            .list_pod_sandbox_stats(request)
            .await?
            .into_inner()
            .stats)
    }

    async fn container_events(&self) -> Result<Events> {
        let events = self
            .runtime
            .clone()
            .get_container_events(GetEventsRequest {})
            .await?
            .into_inner();
        Ok(Box::pin(events.map(|event| event.map_err(Error::from))))
    }
}

/// The trait requires stop and remove to be idempotent; not every runtime is.
fn gone_is_fine(answer: std::result::Result<(), tonic::Status>) -> Result<()> {
    match answer.map_err(Error::from) {
        Err(Error::NotFound(_)) => Ok(()),
        other => other,
    }
}

/// CRI counts in seconds. Fractions are rounded up, because zero has another meaning.
fn whole_seconds(time: Duration) -> i64 {
    let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    i64::try_from(seconds).unwrap_or(i64::MAX)
}
