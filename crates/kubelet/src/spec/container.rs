//! The CRI configuration of a container.

use coracle_cri::v1::{
    ContainerConfig, ContainerMetadata, ImageSpec, KeyValue, LinuxContainerConfig, Mount,
    NamespaceMode,
};
use k8s_openapi::api::core::v1::{Container, Pod};

use super::security::{self, ImageUser};
use super::{SpecError, labels, resources};
use crate::env::expand_all;
use crate::layout::Layout;

/// The inputs of a container besides its spec.
pub struct ContainerInputs<'a> {
    /// The restart count.
    pub restarts: u32,
    /// The image by its ID in the runtime.
    pub image_ref: &'a str,
    pub image_user: &'a ImageUser,
    pub environment: &'a [(String, String)],
    pub mounts: Vec<Mount>,
    /// The container whose process namespace is shared.
    pub target: Option<String>,
    /// Memory of the node in bytes.
    pub memory: i64,
}

/// The configuration of one instance of a container.
pub fn config(
    pod: &Pod,
    container: &Container,
    inputs: ContainerInputs<'_>,
) -> Result<ContainerConfig, SpecError> {
    let mut security = security::context(pod, container, inputs.image_user)?;
    if let Some(target) = inputs.target
        && let Some(options) = &mut security.namespace_options
        && options.pid() == NamespaceMode::Container
    {
        options.pid = NamespaceMode::Target.into();
        options.target_id = target;
    }

    Ok(ContainerConfig {
        metadata: Some(ContainerMetadata {
            name: container.name.clone(),
            attempt: inputs.restarts,
        }),
        image: Some(ImageSpec {
            image: inputs.image_ref.to_owned(),
            user_specified_image: container.image.clone().unwrap_or_default(),
            ..Default::default()
        }),
        command: expand_all(container.command.as_ref(), inputs.environment),
        args: expand_all(container.args.as_ref(), inputs.environment),
        working_dir: container.working_dir.clone().unwrap_or_default(),
        envs: inputs
            .environment
            .iter()
            .map(|(key, value)| KeyValue {
                key: key.clone(),
                value: value.clone().into(),
            })
            .collect(),
        mounts: inputs.mounts,
        labels: labels::of_container(pod, container),
        annotations: labels::annotations(pod, container, inputs.restarts),
        log_path: Layout::log_path(&container.name, inputs.restarts),
        stdin: container.stdin.unwrap_or_default(),
        stdin_once: container.stdin_once.unwrap_or_default(),
        tty: container.tty.unwrap_or_default(),
        linux: Some(LinuxContainerConfig {
            resources: Some(resources::of_container(pod, container, inputs.memory)),
            security_context: Some(security),
        }),
        ..Default::default()
    })
}
