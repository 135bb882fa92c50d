//! A container, as the runtime is asked for it.

use std::collections::BTreeMap;

use coracle_cri::v1::{
    ContainerConfig, ContainerMetadata, ImageSpec, KeyValue, LinuxContainerConfig, Mount, NamespaceMode,
};
use k8s_openapi::api::core::v1::{Container, Pod};

use super::security::{self, ImageUser};
use super::{SpecError, labels, resources};
use crate::layout::Layout;

/// What is known by the time a container is made.
pub struct Made<'a> {
    /// How often one of this name has run before.
    pub restarts: u32,
    /// The image by the name that the runtime knows it by.
    pub image_ref: &'a str,
    pub image_user: &'a ImageUser,
    pub environment: &'a [(String, String)],
    pub mounts: Vec<Mount>,
    /// The container whose processes it is to see.
    pub target: Option<String>,
    /// How much memory the node has.
    pub memory: i64,
}

/// The configuration of one instance of a container.
pub fn config(pod: &Pod, container: &Container, made: Made<'_>) -> Result<ContainerConfig, SpecError> {
    let mut security = security::context(pod, container, made.image_user)?;
    if let Some(target) = made.target
        && let Some(options) = &mut security.namespace_options
        && options.pid() == NamespaceMode::Container
    {
        options.pid = NamespaceMode::Target.into();
        options.target_id = target;
    }
    let known: BTreeMap<&str, &str> =
        made.environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let expanded = |words: &Option<Vec<String>>| -> Vec<String> {
        words.iter().flatten().map(|word| expand(word, &known)).collect()
    };
    Ok(ContainerConfig {
        metadata: Some(ContainerMetadata { name: container.name.clone(), attempt: made.restarts }),
        image: Some(ImageSpec {
            image: made.image_ref.to_owned(),
            user_specified_image: container.image.clone().unwrap_or_default(),
            ..Default::default()
        }),
        command: expanded(&container.command),
        args: expanded(&container.args),
        working_dir: container.working_dir.clone().unwrap_or_default(),
        envs: made
            .environment
            .iter()
            .map(|(key, value)| KeyValue { key: key.clone(), value: value.clone().into() })
            .collect(),
        mounts: made.mounts,
        labels: labels::of_container(pod, container),
        annotations: labels::annotations(pod, container, made.restarts),
        log_path: Layout::log_path(&container.name, made.restarts),
        stdin: container.stdin.unwrap_or_default(),
        stdin_once: container.stdin_once.unwrap_or_default(),
        tty: container.tty.unwrap_or_default(),
        linux: Some(LinuxContainerConfig {
            resources: Some(resources::of_container(pod, container, made.memory)),
            security_context: Some(security),
        }),
        ..Default::default()
    })
}

/// `$(NAME)` becomes what the name stands for, `$$` a dollar; what is not known stays as it is.
pub fn expand(text: &str, known: &BTreeMap<&str, &str>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else if let Some((name, after)) = rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
            match known.get(name) {
                Some(value) => out.push_str(value),
                None => out.push_str(&format!("$({name})")),
            }
            rest = after;
        } else {
            out.push('$');
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_in_commands_are_replaced() {
        let known = BTreeMap::from([("A", "1"), ("B", "two words")]);
        let check = |text: &str, expected: &str| assert_eq!(expand(text, &known), expected);
        check("plain", "plain");
        check("$(A)-$(B)", "1-two words");
        check("$(C)", "$(C)");
        check("$$(A)", "$(A)");
        check("$$$(A)", "$1");
        check("$A $", "$A $");
        check("$(A", "$(A");
        check("cost: 5$", "cost: 5$");
    }
}
