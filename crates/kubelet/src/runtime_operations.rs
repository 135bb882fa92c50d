//! Counts and times the operations of the container runtime, with upstream's names.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use coracle_cri::streaming::{PortStream, Streaming};
use coracle_cri::v1::{
    AttachRequest, AuthConfig, CgroupDriver, Container, ContainerConfig, ContainerFilter,
    ContainerStats, ContainerStatsFilter, ContainerStatusResponse, ExecRequest, ExecSyncResponse,
    Image, ImageFilter, ImageFsInfoResponse, ImageSpec, ImageStatusResponse,
    LinuxContainerResources, PodSandbox, PodSandboxConfig, PodSandboxFilter, PodSandboxStats,
    PodSandboxStatsFilter, PodSandboxStatusResponse, RuntimeConfig, StatusResponse,
    VersionResponse,
};
use coracle_cri::{Events, Images, Result, Runtime};
use coracle_metrics::{Alpha, Buckets, Counter, Counters, Histograms, Registry, metrics};
use tokio::time::Instant;

metrics! {
    pub(crate) struct Operations {
        counts: Counters<&'static str> = counters(
            Alpha,
            "kubelet_runtime_operations_total",
            "Number of runtime operations by type.",
            ["operation_type"],
        ),
        durations: Histograms<&'static str> = histograms(
            Alpha,
            "kubelet_runtime_operations_duration_seconds",
            "Duration of runtime operations in seconds, by type.",
            ["operation_type"],
            Buckets::exponential_seconds(0.005, 2.5, 14),
        ),
        errors: Counters<&'static str> = counters(
            Alpha,
            "kubelet_runtime_operations_errors_total",
            "Number of failed runtime operations by type.",
            ["operation_type"],
        ),
        started: Arc<Counter> = counter(
            Alpha,
            "kubelet_started_pods_total",
            "Number of pods started.",
        ),
        not_started: Arc<Counter> = counter(
            Alpha,
            "kubelet_started_pods_errors_total",
            "Number of pods that could not be started.",
        ),
        sandboxes: Histograms<String> = histograms(
            Alpha,
            "kubelet_run_podsandbox_duration_seconds",
            "Duration of running pod sandboxes in seconds, by runtime handler.",
            ["runtime_handler"],
            Buckets::default_seconds(),
        ),
        sandbox_errors: Counters<String> = counters(
            Alpha,
            "kubelet_run_podsandbox_errors_total",
            "Number of pod sandboxes that could not be run, by runtime handler.",
            ["runtime_handler"],
        ),
    }
}

impl Operations {
    async fn timed<T>(
        &self,
        operation: &'static str,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        self.counts.of(&operation).inc();
        let began = Instant::now();
        let result = work.await;
        self.durations.of(&operation).took(began.elapsed());
        if result.is_err() {
            self.errors.of(&operation).inc();
        }
        result
    }
}

/// A runtime whose operations are counted.
pub(crate) struct MeasuredRuntime {
    runtime: Arc<dyn Runtime>,
    operations: Operations,
}

impl MeasuredRuntime {
    pub(crate) fn new(runtime: Arc<dyn Runtime>, registry: &Registry) -> MeasuredRuntime {
        let operations = Operations::new(registry);
        MeasuredRuntime {
            runtime,
            operations,
        }
    }
}

/// An image service whose operations are counted.
pub(crate) struct MeasuredImages {
    images: Arc<dyn Images>,
    operations: Operations,
}

impl MeasuredImages {
    pub(crate) fn new(images: Arc<dyn Images>, registry: &Registry) -> MeasuredImages {
        let operations = Operations::new(registry);
        MeasuredImages { images, operations }
    }
}

#[async_trait]
impl Runtime for MeasuredRuntime {
    async fn version(&self) -> Result<VersionResponse> {
        let work = self.runtime.version();
        self.operations.timed("version", work).await
    }

    async fn status(&self, verbose: bool) -> Result<StatusResponse> {
        let work = self.runtime.status(verbose);
        self.operations.timed("status", work).await
    }

    async fn cgroup_driver(&self) -> Result<CgroupDriver> {
        let work = self.runtime.cgroup_driver();
        self.operations.timed("runtime_config", work).await
    }

    async fn update_runtime_config(&self, config: RuntimeConfig) -> Result<()> {
        let work = self.runtime.update_runtime_config(config);
        self.operations.timed("update_runtime_config", work).await
    }

    async fn run_pod_sandbox(&self, config: PodSandboxConfig, handler: &str) -> Result<String> {
        self.operations.started.inc();
        let began = Instant::now();
        let run = self.runtime.run_pod_sandbox(config, handler);
        let result = self.operations.timed("run_podsandbox", run).await;
        let sandboxes = &self.operations.sandboxes;
        sandboxes.of(handler).took(began.elapsed());
        if result.is_err() {
            self.operations.not_started.inc();
            self.operations.sandbox_errors.of(handler).inc();
        }
        result
    }

    async fn stop_pod_sandbox(&self, sandbox: &str) -> Result<()> {
        let work = self.runtime.stop_pod_sandbox(sandbox);
        self.operations.timed("stop_podsandbox", work).await
    }

    async fn remove_pod_sandbox(&self, sandbox: &str) -> Result<()> {
        let work = self.runtime.remove_pod_sandbox(sandbox);
        self.operations.timed("remove_podsandbox", work).await
    }

    async fn pod_sandbox_status(
        &self,
        sandbox: &str,
        verbose: bool,
    ) -> Result<PodSandboxStatusResponse> {
        let work = self.runtime.pod_sandbox_status(sandbox, verbose);
        self.operations.timed("podsandbox_status", work).await
    }

    async fn list_pod_sandbox(&self, filter: PodSandboxFilter) -> Result<Vec<PodSandbox>> {
        let work = self.runtime.list_pod_sandbox(filter);
        self.operations.timed("list_podsandbox", work).await
    }

    async fn update_pod_sandbox_resources(
        &self,
        sandbox: &str,
        overhead: Option<LinuxContainerResources>,
        resources: Option<LinuxContainerResources>,
    ) -> Result<()> {
        let work = self
            .runtime
            .update_pod_sandbox_resources(sandbox, overhead, resources);
        self.operations
            .timed("update_podsandbox_resources", work)
            .await
    }

    async fn create_container(
        &self,
        sandbox: &str,
        config: ContainerConfig,
        sandbox_config: PodSandboxConfig,
    ) -> Result<String> {
        let work = self
            .runtime
            .create_container(sandbox, config, sandbox_config);
        self.operations.timed("create_container", work).await
    }

    async fn start_container(&self, container: &str) -> Result<()> {
        let work = self.runtime.start_container(container);
        self.operations.timed("start_container", work).await
    }

    async fn stop_container(&self, container: &str, grace: Duration) -> Result<()> {
        let work = self.runtime.stop_container(container, grace);
        self.operations.timed("stop_container", work).await
    }

    async fn remove_container(&self, container: &str) -> Result<()> {
        let work = self.runtime.remove_container(container);
        self.operations.timed("remove_container", work).await
    }

    async fn container_status(
        &self,
        container: &str,
        verbose: bool,
    ) -> Result<ContainerStatusResponse> {
        let work = self.runtime.container_status(container, verbose);
        self.operations.timed("container_status", work).await
    }

    async fn list_containers(&self, filter: ContainerFilter) -> Result<Vec<Container>> {
        let work = self.runtime.list_containers(filter);
        self.operations.timed("list_containers", work).await
    }

    async fn update_container_resources(
        &self,
        container: &str,
        resources: LinuxContainerResources,
    ) -> Result<()> {
        let work = self
            .runtime
            .update_container_resources(container, resources);
        self.operations.timed("update_container", work).await
    }

    async fn reopen_container_log(&self, container: &str) -> Result<()> {
        let work = self.runtime.reopen_container_log(container);
        self.operations.timed("reopen_container_log", work).await
    }

    async fn exec_sync(
        &self,
        container: &str,
        command: Vec<String>,
        timeout: Option<Duration>,
    ) -> Result<ExecSyncResponse> {
        let work = self.runtime.exec_sync(container, command, timeout);
        self.operations.timed("exec_sync", work).await
    }

    async fn exec(&self, request: ExecRequest) -> Result<Streaming> {
        let work = self.runtime.exec(request);
        self.operations.timed("exec", work).await
    }

    async fn attach(&self, request: AttachRequest) -> Result<Streaming> {
        let work = self.runtime.attach(request);
        self.operations.timed("attach", work).await
    }

    async fn port_forward(&self, sandbox: &str, port: u16) -> Result<PortStream> {
        let work = self.runtime.port_forward(sandbox, port);
        self.operations.timed("port_forward", work).await
    }

    async fn container_stats(&self, container: &str) -> Result<ContainerStats> {
        let work = self.runtime.container_stats(container);
        self.operations.timed("container_stats", work).await
    }

    async fn list_container_stats(
        &self,
        filter: ContainerStatsFilter,
    ) -> Result<Vec<ContainerStats>> {
        let work = self.runtime.list_container_stats(filter);
        self.operations.timed("list_container_stats", work).await
    }

    async fn pod_sandbox_stats(&self, sandbox: &str) -> Result<PodSandboxStats> {
        let work = self.runtime.pod_sandbox_stats(sandbox);
        self.operations.timed("podsandbox_stats", work).await
    }

    async fn list_pod_sandbox_stats(
        &self,
        filter: PodSandboxStatsFilter,
    ) -> Result<Vec<PodSandboxStats>> {
        let work = self.runtime.list_pod_sandbox_stats(filter);
        self.operations.timed("list_podsandbox_stats", work).await
    }

    async fn container_events(&self) -> Result<Events> {
        let work = self.runtime.container_events();
        self.operations.timed("get_container_events", work).await
    }
}

#[async_trait]
impl Images for MeasuredImages {
    async fn list_images(&self, filter: ImageFilter) -> Result<Vec<Image>> {
        let work = self.images.list_images(filter);
        self.operations.timed("list_images", work).await
    }

    async fn image_status(&self, image: ImageSpec, verbose: bool) -> Result<ImageStatusResponse> {
        let work = self.images.image_status(image, verbose);
        self.operations.timed("image_status", work).await
    }

    async fn pull_image(
        &self,
        image: ImageSpec,
        auth: Option<AuthConfig>,
        sandbox: Option<PodSandboxConfig>,
    ) -> Result<String> {
        let work = self.images.pull_image(image, auth, sandbox);
        self.operations.timed("pull_image", work).await
    }

    async fn remove_image(&self, image: ImageSpec) -> Result<()> {
        let work = self.images.remove_image(image);
        self.operations.timed("remove_image", work).await
    }

    async fn image_fs_info(&self) -> Result<ImageFsInfoResponse> {
        let work = self.images.image_fs_info();
        self.operations.timed("image_fs_info", work).await
    }
}
