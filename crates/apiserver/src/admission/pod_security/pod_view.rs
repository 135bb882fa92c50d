//! A pod as the checks read it: containers of all three sorts are alike.

use std::collections::BTreeSet;

use coracle_api::Map;
use k8s_openapi::api::core::v1::{
    ContainerPort, Lifecycle, PodSecurityContext, PodSpec, Probe, SecurityContext,
};

use super::Violation;

/// A pod, or a template of pods.
pub(super) struct PodView<'p> {
    pub(super) annotations: Option<&'p Map>,
    pub(super) spec: &'p PodSpec,
    /// Those that come first first.
    pub(super) containers: Vec<ContainerView<'p>>,
}

pub(super) struct ContainerView<'p> {
    pub(super) name: &'p str,
    pub(super) security: Option<&'p SecurityContext>,
    pub(super) ports: &'p [ContainerPort],
    pub(super) probes: [Option<&'p Probe>; 3],
    pub(super) lifecycle: Option<&'p Lifecycle>,
}

/// A container of either sort, whose types have the same fields and nothing else in common.
macro_rules! container_view {
    ($container:expr) => {
        ContainerView {
            name: &$container.name,
            security: $container.security_context.as_ref(),
            ports: $container.ports.as_deref().unwrap_or_default(),
            probes: [
                $container.liveness_probe.as_ref(),
                $container.readiness_probe.as_ref(),
                $container.startup_probe.as_ref(),
            ],
            lifecycle: $container.lifecycle.as_ref(),
        }
    };
}

impl<'p> PodView<'p> {
    pub(super) fn new(annotations: Option<&'p Map>, spec: &'p PodSpec) -> PodView<'p> {
        let init = spec
            .init_containers
            .iter()
            .flatten()
            .map(|container| container_view!(container));

        let main = spec
            .containers
            .iter()
            .map(|container| container_view!(container));
        let debuggers = spec
            .ephemeral_containers
            .iter()
            .flatten()
            .map(|container| container_view!(container));

        PodView {
            annotations,
            spec,
            containers: init.chain(main).chain(debuggers).collect(),
        }
    }

    pub(super) fn security(&self) -> Option<&'p PodSecurityContext> {
        self.spec.security_context.as_ref()
    }

    pub(super) fn is_of_windows(&self) -> bool {
        self.spec.os.as_ref().is_some_and(|os| os.name == "windows")
    }

    /// Whether root in the pod is mapped to another user on the node.
    pub(super) fn has_own_users(&self) -> bool {
        self.spec.host_users == Some(false)
    }

    /// The names of the containers of which something holds.
    pub(super) fn named(&self, holds: impl Fn(&ContainerView<'p>) -> bool) -> Vec<&'p str> {
        self.containers
            .iter()
            .filter(|container| holds(container))
            .map(|container| container.name)
            .collect()
    }
}

/// `container "a"`, `containers "a", "b"`.
pub(super) fn containers(names: &[&str]) -> String {
    format!(
        "{} {}",
        counted("container", "containers", names.len()),
        quoted(names)
    )
}

pub(super) fn counted<'w>(one: &'w str, many: &'w str, count: usize) -> &'w str {
    if count == 1 { one } else { many }
}

/// Upstream quotes nothing inside of the quotes.
pub(super) fn quoted<T: AsRef<str>>(items: &[T]) -> String {
    let items: Vec<String> = items
        .iter()
        .map(|item| format!("\"{}\"", item.as_ref()))
        .collect();
    items.join(", ")
}

pub(super) fn sorted(set: &BTreeSet<String>) -> Vec<&str> {
    set.iter().map(String::as_str).collect()
}

/// The pod and the containers that set something, as one text; `None` where none does.
pub(super) fn setters(pod: bool, names: &[&str]) -> Option<String> {
    let named = (!names.is_empty()).then(|| containers(names));
    let all: Vec<String> = pod
        .then(|| "pod".to_owned())
        .into_iter()
        .chain(named)
        .collect();
    (!all.is_empty()).then(|| all.join(" and "))
}

pub(super) fn violation(reason: &str, detail: String) -> Option<Violation> {
    Some(Violation {
        reason: reason.to_owned(),
        detail,
    })
}
