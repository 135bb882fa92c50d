//! Labels and annotations of sandboxes and containers, from which the kubelet restores its state
//! after a restart.
//!
//! The names are upstream's; tools (`crictl`, log collectors) read them.

use std::collections::HashMap;

use k8s_openapi::api::core::v1::{Container, ContainerPort, LifecycleHandler, Pod};

use crate::observed::ObservedContainer;
use crate::pod::PodView;

pub const POD_NAME: &str = "io.kubernetes.pod.name";
pub const POD_NAMESPACE: &str = "io.kubernetes.pod.namespace";
pub const POD_UID: &str = "io.kubernetes.pod.uid";
pub const CONTAINER_NAME: &str = "io.kubernetes.container.name";
const HASH: &str = "io.kubernetes.container.hash";
const RESTARTS: &str = "io.kubernetes.container.restartCount";
const MESSAGE_PATH: &str = "io.kubernetes.container.terminationMessagePath";
const MESSAGE_POLICY: &str = "io.kubernetes.container.terminationMessagePolicy";
const PRE_STOP: &str = "io.kubernetes.container.preStopHandler";
const PORTS: &str = "io.kubernetes.container.ports";
const DELETION_GRACE: &str = "io.kubernetes.pod.deletionGracePeriod";
const GRACE: &str = "io.kubernetes.pod.terminationGracePeriod";

/// The pod's labels and its identity.
pub fn of_sandbox(pod: &Pod) -> HashMap<String, String> {
    let own = pod.metadata.labels.clone().unwrap_or_default();
    own.into_iter().chain(identity(pod)).collect()
}

pub fn of_container(pod: &Pod, container: &Container) -> HashMap<String, String> {
    identity(pod)
        .into_iter()
        .chain([(CONTAINER_NAME.to_owned(), container.name.clone())])
        .collect()
}

fn identity(pod: &Pod) -> [(String, String); 3] {
    let text = str::to_owned;
    [
        (text(POD_NAME), text(PodView::name(pod))),
        (text(POD_NAMESPACE), text(pod.namespace())),
        (text(POD_UID), text(pod.uid())),
    ]
}

/// The annotations of a container: the hash of its spec, its restart count, and how to terminate
/// it.
pub fn annotations(pod: &Pod, container: &Container, restarts: u32) -> HashMap<String, String> {
    let mut all = HashMap::new();
    let mut set = |name: &str, value: String| drop(all.insert(name.to_owned(), value));
    set(HASH, hash_of(container));

    set(RESTARTS, restarts.to_string());
    set(
        MESSAGE_PATH,
        container
            .termination_message_path
            .clone()
            .unwrap_or_default(),
    );

    set(
        MESSAGE_POLICY,
        container
            .termination_message_policy
            .clone()
            .unwrap_or_default(),
    );

    if let Some(seconds) = pod.metadata.deletion_grace_period_seconds {
        set(DELETION_GRACE, seconds.to_string());
    }

    if let Some(seconds) = pod.pod_spec().termination_grace_period_seconds {
        set(GRACE, seconds.to_string());
    }

    if let Some(hook) = container
        .lifecycle
        .as_ref()
        .and_then(|lifecycle| lifecycle.pre_stop.as_ref())
        && let Ok(text) = serde_json::to_string(hook)
    {
        set(PRE_STOP, text);
    }

    if let Some(ports) = container.ports.as_ref().filter(|ports| !ports.is_empty())
        && let Ok(text) = serde_json::to_string(ports)
    {
        set(PORTS, text);
    }

    all
}

/// A hash of the fields whose change requires a new container: name and image.
pub fn hash_of(container: &Container) -> String {
    let image = container.image.as_deref().unwrap_or_default();
    let text = container.name.bytes().chain([0]).chain(image.bytes());
    // FNV-1a.
    let hash = text.fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    format!("{hash:x}")
}

impl ObservedContainer {
    /// The hash of the spec it was created from.
    pub fn hash(&self) -> Option<&str> {
        self.annotations.get(HASH).map(String::as_str)
    }

    /// The restart count.
    pub fn restarts(&self) -> u32 {
        self.annotations
            .get(RESTARTS)
            .and_then(|text| text.parse().ok())
            .unwrap_or(self.attempt)
    }

    /// The termination message path, and whether the log is the fallback.
    pub fn message_path(&self) -> (&str, bool) {
        let text = |name: &str| self.annotations.get(name).map_or("", String::as_str);
        (
            text(MESSAGE_PATH),
            text(MESSAGE_POLICY) == "FallbackToLogsOnError",
        )
    }

    /// The grace period, as known when it was created.
    pub fn grace(&self) -> Option<i64> {
        let number = |name: &str| self.annotations.get(name)?.parse().ok();
        number(DELETION_GRACE).or_else(|| number(GRACE))
    }

    /// The container ports.
    pub fn ports(&self) -> Option<Vec<ContainerPort>> {
        serde_json::from_str(self.annotations.get(PORTS)?).ok()
    }

    /// The preStop hook.
    pub fn pre_stop(&self) -> Option<LifecycleHandler> {
        serde_json::from_str(self.annotations.get(PRE_STOP)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_depends_on_name_and_image() {
        let of = |name: &str, image: &str| {
            let image = Some(image.to_owned());
            hash_of(&Container {
                name: name.to_owned(),
                image,
                ..Container::default()
            })
        };
        assert_eq!(of("a", "i:1"), of("a", "i:1"));
        assert_ne!(of("a", "i:1"), of("a", "i:2"));
        assert_ne!(of("a", "bi"), of("ab", "i"));
    }
}
