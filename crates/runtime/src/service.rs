//! The CRI runtime service: dispatches each call to the module that implements it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use coracle_cgroup::Hierarchies;
use coracle_cri::streaming::{PortStream, Streaming};
use coracle_cri::v1::*;
use coracle_cri::{Events, Result};
use coracle_files::private;
use coracle_podnet::PodNetwork;

use crate::config::Config;
use crate::error::Error;
use crate::forwarded_ports::ForwardedPorts;
use crate::namespaces::Pins;
use crate::node::{Node, blocking};
use crate::ports::RootFs;
use crate::spec::pod_namespaces;
use crate::supervise::{Keeper, Program, serve_keeper};

/// The container runtime of this node.
#[derive(Clone)]
pub struct Runtime {
    node: Arc<Node>,
    forwarded: ForwardedPorts,
}

impl Runtime {
    /// Opens the runtime and recovers running pods. Must be called within a tokio runtime.
    pub async fn open(
        config: Config,
        rootfs: Arc<dyn RootFs>,
        network: Option<Arc<dyn PodNetwork>>,
    ) -> std::result::Result<Self, Error> {
        let hierarchies = Hierarchies::detect()?;
        let (config, hierarchies, program) = blocking(move || {
            let (root, state) = (config.root.clone(), config.state.clone());
            let below = [
                config.sandbox_records(),
                config.container_records(),
                config.programs(),
            ];

            for folder in [root, state].iter().chain(&below) {
                private::folder(folder).map_err(Error::io("create", folder))?;
            }

            let program = Program::install(&config.programs())?;
            Ok::<_, Error>((config, hierarchies, program))
        })
        .await?;

        let (keeper, requests) = Keeper::new();
        let node = Arc::new(Node::new(
            config,
            hierarchies,
            program,
            keeper,
            rootfs,
            network,
        ));

        tokio::spawn(serve_keeper(
            Arc::downgrade(&node),
            node.config.keeper(),
            requests,
        ));

        let supervisors = node.supervisors();
        blocking(move || supervisors.create()).await?;
        node.recover().await?;

        Ok(Self {
            node,
            forwarded: ForwardedPorts::new(),
        })
    }
}

#[async_trait]
impl coracle_cri::Runtime for Runtime {
    async fn version(&self) -> Result<VersionResponse> {
        Ok(VersionResponse {
            version: "0.1.0".to_owned(),
            runtime_name: "coracle".to_owned(),
            runtime_version: env!("CARGO_PKG_VERSION").to_owned(),
            runtime_api_version: "v1".to_owned(),
        })
    }

    async fn status(&self, verbose: bool) -> Result<StatusResponse> {
        let ready = |kind: &str| RuntimeCondition {
            r#type: kind.to_owned(),
            status: true,
            ..Default::default()
        };

        let not_ready = |reason: String, message: String| RuntimeCondition {
            r#type: "NetworkReady".to_owned(),
            status: false,
            reason,
            message,
        };

        let network = match self.node.network.as_ref().map(|network| network.ready()) {
            Some(Ok(())) => ready("NetworkReady"),
            Some(Err(why)) => not_ready(why.reason, why.message),
            None => not_ready(
                "NetworkPluginNotReady".to_owned(),
                "no pod network configured".to_owned(),
            ),
        };

        let mut info = HashMap::new();
        if verbose {
            info.insert(
                "cgroups".to_owned(),
                format!("{:?}", self.node.hierarchies.version()),
            );
            info.insert("withheld".to_owned(), self.node.unsupported().join("\n"));
        }

        Ok(StatusResponse {
            status: Some(RuntimeStatus {
                conditions: vec![ready("RuntimeReady"), network],
            }),
            info,
            runtime_handlers: vec![RuntimeHandler {
                name: String::new(),
                features: Some(RuntimeHandlerFeatures {
                    recursive_read_only_mounts: true,
                    user_namespaces: false,
                }),
            }],
            features: Some(RuntimeFeatures {
                supplemental_groups_policy: true,
                ..Default::default()
            }),
        })
    }

    async fn cgroup_driver(&self) -> Result<CgroupDriver> {
        Ok(CgroupDriver::Cgroupfs)
    }

    async fn update_runtime_config(&self, config: RuntimeConfig) -> Result<()> {
        let ranges = config.network_config.unwrap_or_default().pod_cidr;
        if let (Some(network), false) = (&self.node.network, ranges.is_empty()) {
            let parse = |range: &str| {
                let range = range.trim();
                range.parse().map_err(|_| {
                    coracle_cri::Error::InvalidArgument(format!("invalid CIDR {range:?}"))
                })
            };
            let ranges = ranges.split(',').map(parse).collect::<Result<_>>()?;
            network.learn_ranges(ranges).await.map_err(Error::Network)?;
        }

        Ok(())
    }

    async fn run_pod_sandbox(&self, config: PodSandboxConfig, handler: &str) -> Result<String> {
        Ok(self.node.run_sandbox(config, handler).await?)
    }

    async fn stop_pod_sandbox(&self, sandbox: &str) -> Result<()> {
        Ok(self.node.stop_sandbox(sandbox).await?)
    }

    async fn remove_pod_sandbox(&self, sandbox: &str) -> Result<()> {
        Ok(self.node.remove_sandbox(sandbox).await?)
    }

    async fn pod_sandbox_status(
        &self,
        sandbox: &str,
        verbose: bool,
    ) -> Result<PodSandboxStatusResponse> {
        Ok(self.node.sandbox_status(sandbox, verbose)?)
    }

    async fn list_pod_sandbox(&self, filter: PodSandboxFilter) -> Result<Vec<PodSandbox>> {
        Ok(self.node.list_sandboxes(&filter))
    }

    async fn update_pod_sandbox_resources(
        &self,
        sandbox: &str,
        _: Option<LinuxContainerResources>,
        _: Option<LinuxContainerResources>,
    ) -> Result<()> {
        // The pod cgroup is managed by the kubelet, which has updated it already.
        self.node.sandbox(sandbox)?;
        Ok(())
    }

    async fn create_container(
        &self,
        sandbox: &str,
        config: ContainerConfig,
        sandbox_config: PodSandboxConfig,
    ) -> Result<String> {
        Ok(self
            .node
            .create_container(sandbox, config, sandbox_config)
            .await?)
    }

    async fn start_container(&self, container: &str) -> Result<()> {
        Ok(self.node.start_container(container).await?)
    }

    async fn stop_container(&self, container: &str, grace: Duration) -> Result<()> {
        Ok(self.node.stop_container(container, grace).await?)
    }

    async fn remove_container(&self, container: &str) -> Result<()> {
        Ok(self.node.remove_container(container).await?)
    }

    async fn container_status(
        &self,
        container: &str,
        verbose: bool,
    ) -> Result<ContainerStatusResponse> {
        Ok(self.node.container_status(container, verbose)?)
    }

    async fn list_containers(&self, filter: ContainerFilter) -> Result<Vec<Container>> {
        Ok(self.node.list_containers(&filter))
    }

    async fn update_container_resources(
        &self,
        container: &str,
        resources: LinuxContainerResources,
    ) -> Result<()> {
        Ok(self.node.update_container(container, resources).await?)
    }

    async fn reopen_container_log(&self, container: &str) -> Result<()> {
        Ok(self.node.reopen_log(container).await?)
    }

    async fn exec_sync(
        &self,
        container: &str,
        command: Vec<String>,
        timeout: Option<Duration>,
    ) -> Result<ExecSyncResponse> {
        Ok(self.node.exec_sync(container, command, timeout).await?)
    }

    async fn exec(&self, request: ExecRequest) -> Result<Streaming> {
        Ok(Streaming::Session(self.node.exec(request).await?))
    }

    async fn attach(&self, request: AttachRequest) -> Result<Streaming> {
        Ok(Streaming::Session(self.node.attach(&request).await?))
    }

    async fn port_forward(&self, sandbox: &str, port: u16) -> Result<PortStream> {
        let sandbox = self.node.sandbox(sandbox)?;
        if !sandbox.is_ready() {
            return Err(Error::WrongState(format!("sandbox {:?} is not ready", sandbox.id)).into());
        }
        let host = pod_namespaces(&sandbox.record().config).network() == NamespaceMode::Node;
        let pin = Pins(&self.node.config.sandbox_state(&sandbox.id)).network();
        let stream = self.forwarded.connect((!host).then_some(pin), port).await;
        let stream = stream
            .map_err(|error| coracle_cri::Error::Unavailable(format!("port {port}: {error}")))?;
        Ok(PortStream::Connection(Box::pin(stream)))
    }

    async fn container_stats(&self, container: &str) -> Result<ContainerStats> {
        Ok(self.node.container_stats(container).await?)
    }

    async fn list_container_stats(
        &self,
        filter: ContainerStatsFilter,
    ) -> Result<Vec<ContainerStats>> {
        Ok(self.node.list_container_stats(&filter).await?)
    }

    async fn pod_sandbox_stats(&self, sandbox: &str) -> Result<PodSandboxStats> {
        Ok(self.node.sandbox_stats(sandbox).await?)
    }

    async fn list_pod_sandbox_stats(
        &self,
        filter: PodSandboxStatsFilter,
    ) -> Result<Vec<PodSandboxStats>> {
        Ok(self.node.list_sandbox_stats(&filter).await?)
    }

    async fn container_events(&self) -> Result<Events> {
        Ok(self.node.events.subscribe())
    }
}
