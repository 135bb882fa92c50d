//! The security context of a container.

use coracle_cri::v1::{
    Capability, Int64Value, LinuxContainerSecurityContext, NamespaceMode, NamespaceOption,
    SecurityProfile, security_profile::ProfileType,
};
use k8s_openapi::api::core::v1::{Container, Pod, SeccompProfile};

use super::SpecError;
use super::sandbox::{groups_policy, selinux};
use crate::pod::PodView;

/// The user of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageUser {
    Id(i64),
    /// A name that only the image's `/etc/passwd` resolves.
    Name(String),
}

/// The namespaces that a pod's containers share.
pub fn namespaces(pod: &Pod) -> NamespaceOption {
    let spec = pod.pod_spec();
    let on_node = |asked: Option<bool>| match asked.unwrap_or_default() {
        true => NamespaceMode::Node,
        false => NamespaceMode::Pod,
    };

    let pid = match (
        spec.host_pid.unwrap_or_default(),
        spec.share_process_namespace.unwrap_or_default(),
    ) {
        (true, _) => NamespaceMode::Node,
        (false, true) => NamespaceMode::Pod,
        (false, false) => NamespaceMode::Container,
    };

    NamespaceOption {
        network: on_node(spec.host_network).into(),
        ipc: on_node(spec.host_ipc).into(),
        pid: pid.into(),
        ..Default::default()
    }
}

pub fn is_privileged(container: &Container) -> bool {
    container
        .security_context
        .as_ref()
        .and_then(|context| context.privileged)
        .unwrap_or_default()
}

/// Enforces `runAsNonRoot`; fails if the user cannot be verified.
pub fn check_non_root(
    pod: &Pod,
    container: &Container,
    image: &ImageUser,
) -> Result<(), SpecError> {
    let own = container.security_context.clone().unwrap_or_default();
    let pods = pod.pod_spec().security_context.clone().unwrap_or_default();
    if !own
        .run_as_non_root
        .or(pods.run_as_non_root)
        .unwrap_or_default()
    {
        return Ok(());
    }

    let name = &container.name;
    let whom = format!("{}_{}({})", PodView::name(pod), pod.namespace(), pod.uid());
    match (own.run_as_user.or(pods.run_as_user), image) {
        (Some(0), _) => Err(SpecError(format!(
            "container's runAsUser breaks non-root policy (pod: {whom:?}, container: {name})"
        ))),
        (Some(_), _) => Ok(()),
        (None, ImageUser::Name(user)) => Err(SpecError(format!(
            "container has runAsNonRoot and image has non-numeric user ({user}), cannot verify user is non-root (pod: {whom:?}, container: {name})"
        ))),
        (None, ImageUser::Id(0)) => Err(SpecError(format!(
            "container has runAsNonRoot and image will run as root (pod: {whom:?}, container: {name})"
        ))),
        (None, ImageUser::Id(_)) => Ok(()),
    }
}

/// The CRI security context; the container's settings take precedence over the pod's.
pub fn context(
    pod: &Pod,
    container: &Container,
    image: &ImageUser,
) -> Result<LinuxContainerSecurityContext, SpecError> {
    let own = container.security_context.clone().unwrap_or_default();
    let pods = pod.pod_spec().security_context.clone().unwrap_or_default();
    let number = |value: Option<i64>| value.map(|value| Int64Value { value });

    let user = own.run_as_user.or(pods.run_as_user);
    let (user, username) = match (user, image) {
        (Some(user), _) => (Some(user), String::new()),
        (None, ImageUser::Id(user)) => (Some(*user), String::new()),
        (None, ImageUser::Name(name)) => (None, name.clone()),
    };

    let (masked, readonly) = match own.proc_mount.as_deref() {
        Some("Unmasked") => (Vec::new(), Vec::new()),
        _ => (texts(&MASKED), texts(&READ_ONLY)),
    };

    Ok(LinuxContainerSecurityContext {
        capabilities: own.capabilities.map(|wanted| Capability {
            add_capabilities: wanted.add.unwrap_or_default(),
            drop_capabilities: wanted.drop.unwrap_or_default(),
            ..Default::default()
        }),
        privileged: own.privileged.unwrap_or_default(),
        namespace_options: Some(namespaces(pod)),
        selinux_options: own
            .se_linux_options
            .or(pods.se_linux_options)
            .as_ref()
            .map(selinux),
        run_as_user: number(user),
        run_as_username: username,
        run_as_group: number(own.run_as_group.or(pods.run_as_group)),
        readonly_rootfs: own.read_only_root_filesystem.unwrap_or_default(),
        supplemental_groups: pods
            .fs_group
            .into_iter()
            .chain(pods.supplemental_groups.into_iter().flatten())
            .collect(),
        supplemental_groups_policy: groups_policy(pods.supplemental_groups_policy.as_deref())
            .into(),
        no_new_privs: own.allow_privilege_escalation == Some(false),
        masked_paths: masked,
        readonly_paths: readonly,
        seccomp: Some(seccomp(
            own.seccomp_profile.or(pods.seccomp_profile).as_ref(),
        )?),
        ..Default::default()
    })
}

fn seccomp(profile: Option<&SeccompProfile>) -> Result<SecurityProfile, SpecError> {
    let of = |kind: ProfileType| SecurityProfile {
        profile_type: kind.into(),
        ..Default::default()
    };

    match profile.map(|profile| profile.type_.as_str()) {
        Some("RuntimeDefault") => Ok(of(ProfileType::RuntimeDefault)),
        Some("Localhost") => {
            let file = profile
                .and_then(|profile| profile.localhost_profile.clone())
                .unwrap_or_default();
            if file.is_empty() {
                let text = "localhostProfile must be set if seccompProfile type is Localhost.";
                return Err(SpecError(text.to_owned()));
            }

            Ok(SecurityProfile {
                localhost_ref: file,
                ..of(ProfileType::Localhost)
            })
        }
        _ => Ok(of(ProfileType::Unconfined)),
    }
}

fn texts(paths: &[&str]) -> Vec<String> {
    paths.iter().map(|path| (*path).to_owned()).collect()
}

/// Masked and read-only paths of `/proc` and `/sys`.
const MASKED: [&str; 12] = [
    "/proc/asound",
    "/proc/acpi",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
    "/sys/devices/virtual/powercap",
];
const READ_ONLY: [&str; 5] = [
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/sys",
    "/proc/sysrq-trigger",
];

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{PodSecurityContext, PodSpec, SecurityContext};

    use super::*;

    fn pod(context: PodSecurityContext) -> Pod {
        let spec = PodSpec {
            security_context: Some(context),
            ..PodSpec::default()
        };
        Pod {
            spec: Some(spec),
            ..Pod::default()
        }
    }

    fn container(context: SecurityContext) -> Container {
        Container {
            name: "c".into(),
            security_context: Some(context),
            ..Container::default()
        }
    }

    #[test]
    fn run_as_non_root_is_enforced() {
        let check = |user: Option<i64>, image: ImageUser, text: Option<&str>| {
            let pod = pod(PodSecurityContext {
                run_as_non_root: Some(true),
                ..Default::default()
            });

            let container = container(SecurityContext {
                run_as_user: user,
                ..Default::default()
            });

            let error = check_non_root(&pod, &container, &image)
                .err()
                .map(|error| error.0);
            assert_eq!(error.is_some(), text.is_some(), "{error:?}");
            assert!(error.unwrap_or_default().contains(text.unwrap_or_default()));
        };

        check(
            Some(0),
            ImageUser::Id(5),
            Some("container's runAsUser breaks non-root policy"),
        );

        check(Some(1), ImageUser::Id(0), None);
        check(
            None,
            ImageUser::Id(0),
            Some("container has runAsNonRoot and image will run as root"),
        );

        check(None, ImageUser::Id(7), None);
        check(
            None,
            ImageUser::Name("web".into()),
            Some("image has non-numeric user (web), cannot verify"),
        );
    }

    #[test]
    fn the_container_takes_precedence_over_the_pod_and_that_over_the_image() {
        let pods = PodSecurityContext {
            run_as_user: Some(1),
            run_as_group: Some(2),
            fs_group: Some(3),
            supplemental_groups: Some(vec![4]),
            ..Default::default()
        };

        let own = SecurityContext {
            run_as_user: Some(9),
            ..Default::default()
        };
        let made = context(&pod(pods), &container(own), &ImageUser::Id(0)).unwrap();
        assert_eq!(made.run_as_user, Some(Int64Value { value: 9 }));
        assert_eq!(made.run_as_group, Some(Int64Value { value: 2 }));
        assert_eq!(made.supplemental_groups, [3, 4]);

        let made = context(
            &Pod::default(),
            &Container::default(),
            &ImageUser::Name("web".into()),
        )
        .unwrap();

        assert_eq!(
            (made.run_as_user, made.run_as_username.as_str()),
            (None, "web")
        );

        assert_eq!(made.masked_paths.len(), 12);
    }

    #[test]
    fn the_pid_namespace_is_the_containers_unless_shared() {
        let check = |host: bool, share: bool, mode: NamespaceMode| {
            let spec = PodSpec {
                host_pid: Some(host),
                share_process_namespace: Some(share),
                ..PodSpec::default()
            };

            assert_eq!(
                namespaces(&Pod {
                    spec: Some(spec),
                    ..Pod::default()
                })
                .pid(),
                mode
            );
        };

        check(false, false, NamespaceMode::Container);
        check(false, true, NamespaceMode::Pod);
        check(true, true, NamespaceMode::Node);
    }
}
