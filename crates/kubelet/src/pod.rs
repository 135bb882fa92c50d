//! Accessors of pods.

use std::fmt;
use std::sync::LazyLock;

use coracle_api::Text;
use coracle_client::ObjectReference;
use k8s_openapi::api::core::v1::{Container, EphemeralContainer, Pod, PodSpec, PodStatus};

/// Identifies a pod by its UID; the rest is for users and paths.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodId {
    pub uid: Text,
    pub namespace: Text,
    pub name: Text,
}

impl fmt::Display for PodId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.namespace, self.name)
    }
}

/// The kind of a container in its pod's spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Runs to completion before the next one starts.
    Init,
    /// An init container that keeps running: `restartPolicy: Always`.
    Sidecar,
    Main,
    /// Added to a running pod; never restarted.
    Ephemeral,
}

/// Frequently used fields of a pod.
pub trait PodView {
    fn id(&self) -> PodId;
    fn uid(&self) -> &str;
    fn namespace(&self) -> &str;
    fn name(&self) -> &str;
    /// Empty if the pod has none, which the API does not allow.
    fn pod_spec(&self) -> &PodSpec;
    fn pod_status(&self) -> &PodStatus;
    fn annotation(&self, name: &str) -> Option<&str>;
    fn is_host_network(&self) -> bool;
    fn is_being_deleted(&self) -> bool;
    /// `Succeeded` or `Failed` on the server.
    fn has_terminal_phase(&self) -> bool;
    fn restart_policy(&self) -> &str;
    /// Init containers and sidecars, then main ones.
    fn lasting_containers(&self) -> impl Iterator<Item = (Kind, &Container)>;
    fn ephemeral_containers(&self) -> &[EphemeralContainer];
    /// The container of this name, of whatever kind.
    fn container(&self, name: &str) -> Option<(Kind, Container)>;
    /// The pod as the object of an event.
    fn reference(&self) -> ObjectReference;
    /// One of its containers as the object of an event.
    fn container_reference(&self, kind: Kind, container: &str) -> ObjectReference;
}

impl PodView for Pod {
    fn id(&self) -> PodId {
        PodId {
            uid: Text::new(self.uid()),
            namespace: Text::new(self.namespace()),
            name: Text::new(PodView::name(self)),
        }
    }

    fn uid(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }

    fn namespace(&self) -> &str {
        self.metadata.namespace.as_deref().unwrap_or_default()
    }

    fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    fn pod_spec(&self) -> &PodSpec {
        static EMPTY: LazyLock<PodSpec> = LazyLock::new(PodSpec::default);
        self.spec.as_ref().unwrap_or(&EMPTY)
    }

    fn pod_status(&self) -> &PodStatus {
        static EMPTY: LazyLock<PodStatus> = LazyLock::new(PodStatus::default);
        self.status.as_ref().unwrap_or(&EMPTY)
    }

    fn annotation(&self, name: &str) -> Option<&str> {
        self.metadata
            .annotations
            .as_ref()?
            .get(name)
            .map(String::as_str)
    }

    fn is_host_network(&self) -> bool {
        self.pod_spec().host_network.unwrap_or_default()
    }

    fn is_being_deleted(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    fn has_terminal_phase(&self) -> bool {
        matches!(
            self.pod_status().phase.as_deref(),
            Some("Succeeded" | "Failed")
        )
    }

    fn restart_policy(&self) -> &str {
        self.pod_spec()
            .restart_policy
            .as_deref()
            .unwrap_or("Always")
    }

    fn lasting_containers(&self) -> impl Iterator<Item = (Kind, &Container)> {
        let spec = self.pod_spec();
        let first = spec.init_containers.iter().flatten();
        let first = first.map(|container| {
            let stays = container.restart_policy.as_deref() == Some("Always");
            (if stays { Kind::Sidecar } else { Kind::Init }, container)
        });
        first.chain(
            spec.containers
                .iter()
                .map(|container| (Kind::Main, container)),
        )
    }

    fn ephemeral_containers(&self) -> &[EphemeralContainer] {
        self.pod_spec()
            .ephemeral_containers
            .as_deref()
            .unwrap_or_default()
    }

    fn container(&self, name: &str) -> Option<(Kind, Container)> {
        let mut lasting = self.lasting_containers();
        let found = lasting.find(|(_, container)| container.name == name);
        found
            .map(|(kind, container)| (kind, container.clone()))
            .or_else(|| {
                let found = self
                    .ephemeral_containers()
                    .iter()
                    .find(|container| container.name == name);
                found.map(|container| (Kind::Ephemeral, of_ephemeral(container)))
            })
    }

    fn reference(&self) -> ObjectReference {
        ObjectReference {
            api_version: Text::const_new("v1"),
            kind: Text::const_new("Pod"),
            namespace: Text::new(self.namespace()),
            name: Text::new(PodView::name(self)),
            uid: Text::new(self.uid()),
            resource_version: Text::new(
                self.metadata
                    .resource_version
                    .as_deref()
                    .unwrap_or_default(),
            ),
            field_path: Text::default(),
        }
    }

    fn container_reference(&self, kind: Kind, container: &str) -> ObjectReference {
        let list = match kind {
            Kind::Init | Kind::Sidecar => "initContainers",
            Kind::Main => "containers",
            Kind::Ephemeral => "ephemeralContainers",
        };
        let field_path = Text::from(format!("spec.{list}{{{container}}}"));
        ObjectReference {
            field_path,
            ..self.reference()
        }
    }
}

/// Ephemeral containers have the same fields, apart from the target container.
pub fn of_ephemeral(ephemeral: &EphemeralContainer) -> Container {
    let EphemeralContainer {
        args,
        command,
        env,
        env_from,
        image,
        image_pull_policy,
        lifecycle,
        liveness_probe,
        name,
        ports,
        readiness_probe,
        resize_policy,
        resources,
        restart_policy,
        restart_policy_rules,
        security_context,
        startup_probe,
        stdin,
        stdin_once,
        target_container_name: _,
        termination_message_path,
        termination_message_policy,
        tty,
        volume_devices,
        volume_mounts,
        working_dir,
    } = ephemeral.clone();

    Container {
        args,
        command,
        env,
        env_from,
        image,
        image_pull_policy,
        lifecycle,
        liveness_probe,
        name,
        ports,
        readiness_probe,
        resize_policy,
        resources,
        restart_policy,
        restart_policy_rules,
        security_context,
        startup_probe,
        stdin,
        stdin_once,
        termination_message_path,
        termination_message_policy,
        tty,
        volume_devices,
        volume_mounts,
        working_dir,
    }
}
