//! Read-only access to a node from another process: list pods and containers, status, exec. Nothing
//! is changed.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use coracle_cgroup::Hierarchies;
use coracle_cri::streaming::Session;
use coracle_cri::v1::{
    Container, ContainerFilter, ContainerStatusResponse, ExecRequest, ImageSpec, PodSandbox,
    PodSandboxFilter, PodSandboxStatusResponse,
};

use crate::config::Config;
use crate::error::Error;
use crate::node::Node;
use crate::ports::{ImageForContainer, RootFs, RootFsError, RootFsUsage};
use crate::supervise::{Keeper, Program};

/// Read-only access to a node that another process runs.
pub struct Observer {
    node: Arc<Node>,
}

impl Observer {
    /// Reads the records, and connects to the supervisors. Must be called within a tokio runtime.
    pub async fn open(config: Config) -> Result<Self, Error> {
        let (hierarchies, program) = (
            Hierarchies::detect()?,
            Program::install(&config.programs())?,
        );

        let (keeper, _) = Keeper::new();
        let node = Node::new(
            config,
            hierarchies,
            program,
            keeper,
            Arc::new(NoRootFs),
            None,
        );

        let node = Arc::new(node.into_observer());
        node.recover().await?;

        Ok(Self { node })
    }

    pub fn pods(&self) -> Vec<PodSandbox> {
        self.node.list_sandboxes(&PodSandboxFilter::default())
    }

    pub fn containers(&self) -> Vec<Container> {
        self.node.list_containers(&ContainerFilter::default())
    }

    /// The ID that starts with `prefix`.
    pub fn find(&self, prefix: &str) -> Result<String, Error> {
        let ids = self.containers().into_iter().map(|container| container.id);
        let ids = ids.chain(self.pods().into_iter().map(|pod| pod.id));
        let mut found = ids.filter(|id| id.starts_with(prefix));
        match (found.next(), found.next()) {
            (Some(id), None) => Ok(id),
            (Some(_), Some(_)) => Err(Error::Invalid(format!(
                "more than one ID starts with {prefix:?}"
            ))),
            _ => Err(Error::no_container(prefix)),
        }
    }

    pub fn container(&self, id: &str) -> Result<ContainerStatusResponse, Error> {
        self.node.container_status(id, true)
    }

    pub fn pod(&self, id: &str) -> Result<PodSandboxStatusResponse, Error> {
        self.node.sandbox_status(id, true)
    }

    pub async fn exec(&self, request: ExecRequest) -> Result<Session, Error> {
        self.node.exec(request).await
    }
}

/// An observer needs no images.
struct NoRootFs;

#[async_trait]
impl RootFs for NoRootFs {
    async fn resolve(&self, image: &ImageSpec) -> Result<ImageForContainer, RootFsError> {
        Err(RootFsError::NoSuchImage(image.image.clone()))
    }

    async fn prepare(
        &self,
        _: &str,
        image: &ImageForContainer,
        _: &[String],
    ) -> Result<PathBuf, RootFsError> {
        Err(RootFsError::NoSuchImage(image.id.clone()))
    }

    async fn remove(&self, container: &str) -> Result<(), RootFsError> {
        Err(RootFsError::NoSuchImage(container.to_owned()))
    }

    async fn containers(&self) -> Result<Vec<String>, RootFsError> {
        Ok(Vec::new())
    }

    async fn usage(&self, _: &str) -> Result<RootFsUsage, RootFsError> {
        Ok(RootFsUsage::default())
    }
}
