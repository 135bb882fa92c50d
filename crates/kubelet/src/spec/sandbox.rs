//! The CRI configuration of a sandbox.

use coracle_cri::v1::{
    DnsConfig, Int64Value, LinuxPodSandboxConfig, LinuxSandboxSecurityContext, PodSandboxConfig,
    PodSandboxMetadata, PortMapping, Protocol, SeLinuxOption, SecurityProfile,
    SupplementalGroupsPolicy, security_profile::ProfileType,
};
use k8s_openapi::api::core::v1::{ContainerPort, Pod, SELinuxOptions};

use super::{SpecError, labels, names, security};
use crate::layout::Layout;
use crate::pod::PodView;

/// The configuration of a pod's sandbox.
pub fn config(
    pod: &Pod,
    attempt: u32,
    dns: DnsConfig,
    cluster_domain: &str,
    layout: &Layout,
    cgroup_parent: &str,
) -> Result<PodSandboxConfig, SpecError> {
    if pod.pod_spec().host_users == Some(false) {
        // Running it in the host's user namespace would weaken its isolation.
        return Err(SpecError(
            "RuntimeClass handler \"\" does not support user namespaces".to_owned(),
        ));
    }

    let hostname = match pod.is_host_network() {
        true => String::new(),
        false => {
            let (name, domain) = names::host_name(pod, cluster_domain)?;
            names::kernel_name(pod, &name, &domain)?
        }
    };

    let id = pod.id();
    Ok(PodSandboxConfig {
        metadata: Some(PodSandboxMetadata {
            name: id.name.to_string(),
            uid: id.uid.to_string(),
            namespace: id.namespace.to_string(),
            attempt,
        }),
        hostname,
        log_directory: layout.logs_of(&id).to_string_lossy().into_owned(),
        dns_config: Some(dns),
        port_mappings: ports(pod),
        labels: labels::of_sandbox(pod),
        annotations: pod
            .metadata
            .annotations
            .clone()
            .unwrap_or_default()
            .into_iter()
            .collect(),
        linux: Some(LinuxPodSandboxConfig {
            cgroup_parent: cgroup_parent.to_owned(),
            security_context: Some(security_context(pod)),
            sysctls: sysctls(pod),
            ..Default::default()
        }),
    })
}

fn security_context(pod: &Pod) -> LinuxSandboxSecurityContext {
    let own = pod.pod_spec().security_context.clone().unwrap_or_default();
    let number = |value: Option<i64>| value.map(|value| Int64Value { value });
    LinuxSandboxSecurityContext {
        namespace_options: Some(security::namespaces(pod)),
        privileged: pod
            .lasting_containers()
            .any(|(_, container)| security::is_privileged(container)),
        // The sandbox process needs no more, whatever the containers request.
        seccomp: Some(SecurityProfile {
            profile_type: ProfileType::RuntimeDefault.into(),
            ..Default::default()
        }),
        run_as_user: number(own.run_as_user),
        run_as_group: number(own.run_as_group),
        supplemental_groups: own
            .fs_group
            .into_iter()
            .chain(own.supplemental_groups.into_iter().flatten())
            .collect(),
        supplemental_groups_policy: groups_policy(own.supplemental_groups_policy.as_deref()).into(),
        selinux_options: own.se_linux_options.as_ref().map(selinux),
        ..Default::default()
    }
}

pub(super) fn groups_policy(policy: Option<&str>) -> SupplementalGroupsPolicy {
    match policy {
        Some("Strict") => SupplementalGroupsPolicy::Strict,
        _ => SupplementalGroupsPolicy::Merge,
    }
}

pub(super) fn selinux(options: &SELinuxOptions) -> SeLinuxOption {
    SeLinuxOption {
        user: options.user.clone().unwrap_or_default(),
        role: options.role.clone().unwrap_or_default(),
        r#type: options.type_.clone().unwrap_or_default(),
        level: options.level.clone().unwrap_or_default(),
    }
}

/// Names have dots or slashes; CRI requires dots.
fn sysctls(pod: &Pod) -> std::collections::HashMap<String, String> {
    let own = pod
        .pod_spec()
        .security_context
        .as_ref()
        .and_then(|context| context.sysctls.as_ref());
    own.into_iter()
        .flatten()
        .map(|sysctl| (sysctl.name.replace('/', "."), sysctl.value.clone()))
        .collect()
}

fn ports(pod: &Pod) -> Vec<PortMapping> {
    let stays = pod
        .lasting_containers()
        .filter(|(kind, _)| *kind != crate::pod::Kind::Init);
    stays
        .flat_map(|(_, container)| container.ports.iter().flatten())
        .map(port)
        .collect()
}

fn port(port: &ContainerPort) -> PortMapping {
    let protocol = match port.protocol.as_deref() {
        Some("UDP") => Protocol::Udp,
        Some("SCTP") => Protocol::Sctp,
        _ => Protocol::Tcp,
    };
    PortMapping {
        protocol: protocol.into(),
        container_port: port.container_port,
        host_port: port.host_port.unwrap_or_default(),
        host_ip: port.host_ip.clone().unwrap_or_default(),
    }
}
