//! The checks of the level `baseline`: known privilege escalations.

use std::collections::BTreeSet;

use coracle_api::Value;
use coracle_api::go_text::Quoted;
use k8s_openapi::api::core::v1::SELinuxOptions;

use super::Violation;
use super::pod_view::{
    ContainerView, PodView, containers, counted, quoted, setters, sorted, violation,
};

/// What is wrong with a pod by the rules of `v1.minor`. Below the restricted level some rules have
/// stricter ones there.
pub(super) fn violations(pod: &PodView<'_>, minor: u32, restricted: bool) -> Vec<Violation> {
    let rules = [
        app_armor(pod),
        (!(restricted && minor >= 22))
            .then(|| capabilities(pod))
            .flatten(),
        host_namespaces(pod),
        (!restricted).then(|| host_paths(pod)).flatten(),
        host_ports(pod),
        (minor >= 34).then(|| hosts(pod)).flatten(),
        privileged(pod),
        // From v1.35 on a pod with users of its own may; at the restricted level it still may not.
        (!(minor >= 35 && (restricted || pod.has_own_users())))
            .then(|| proc_mount(pod))
            .flatten(),
        selinux(pod, minor),
        match (minor, restricted) {
            (0..=18, _) => seccomp_annotations(pod),
            (_, false) => seccomp(pod),
            (_, true) => None,
        },
        sysctls(pod, minor),
        host_process(pod),
    ];

    rules.into_iter().flatten().collect()
}

fn app_armor(pod: &PodView<'_>) -> Option<Violation> {
    const PREFIX: &str = "container.apparmor.security.beta.kubernetes.io/";

    let is_bad = |kind: &str| !matches!(kind, "RuntimeDefault" | "Localhost");
    let whole = pod
        .security()
        .and_then(|security| security.app_armor_profile.as_ref());
    let whole = whole
        .map(|profile| profile.type_.as_str())
        .filter(|kind| is_bad(kind));

    let of = |container: &ContainerView<'_>| {
        let profile = container
            .security
            .and_then(|security| security.app_armor_profile.as_ref());
        profile
            .map(|profile| profile.type_.clone())
            .filter(|kind| is_bad(kind))
    };

    let kinds: BTreeSet<String> = whole
        .map(str::to_owned)
        .into_iter()
        .chain(pod.containers.iter().filter_map(of))
        .collect();
    let mut values: Vec<String> = kinds.into_iter().collect();

    let names = pod.named(|container| of(container).is_some());
    let mut by: Vec<String> = setters(whole.is_some(), &names).into_iter().collect();
    let annotations = pod
        .annotations
        .into_iter()
        .flat_map(|annotations| annotations.iter());

    let bad: Vec<String> = annotations
        .filter_map(|(key, value)| Some((key, value.as_str()?)))
        .filter(|(key, value)| {
            let allowed =
                value.is_empty() || *value == "runtime/default" || value.starts_with("localhost/");
            key.starts_with(PREFIX) && !allowed
        })
        .map(|(key, value)| format!("{key}={}", Quoted(value)))
        .collect();

    if !bad.is_empty() {
        by.push(counted("annotation", "annotations", bad.len()).to_owned());
        values.extend(bad);
    }

    if by.is_empty() {
        return None;
    }

    let reason = counted(
        "forbidden AppArmor profile",
        "forbidden AppArmor profiles",
        values.len(),
    );

    violation(
        reason,
        format!(
            "{} must not set AppArmor profile type to {}",
            by.join(" and "),
            quoted(&values)
        ),
    )
}

fn capabilities(pod: &PodView<'_>) -> Option<Violation> {
    const USUAL: [&str; 13] = [
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    ];

    let of = |container: &ContainerView<'_>| added(container, |name| USUAL.contains(&name));
    let names = pod.named(|container| !of(container).is_empty());

    let all: BTreeSet<String> = pod.containers.iter().flat_map(of).collect();
    let detail = || {
        format!(
            "{} must not include {} in securityContext.capabilities.add",
            containers(&names),
            quoted(&sorted(&all))
        )
    };

    (!names.is_empty())
        .then(|| violation("non-default capabilities", detail()))
        .flatten()
}

/// Capabilities that a container adds and may not.
pub(super) fn added(container: &ContainerView<'_>, may: impl Fn(&str) -> bool) -> Vec<String> {
    let capabilities = container
        .security
        .and_then(|security| security.capabilities.as_ref());
    let added = capabilities
        .and_then(|capabilities| capabilities.add.as_ref())
        .into_iter()
        .flatten();
    added.filter(|name| !may(name)).cloned().collect()
}

fn host_namespaces(pod: &PodView<'_>) -> Option<Violation> {
    let shared = [
        ("hostNetwork=true", pod.spec.host_network),
        ("hostPID=true", pod.spec.host_pid),
        ("hostIPC=true", pod.spec.host_ipc),
    ];

    let found: Vec<&str> = shared
        .into_iter()
        .filter(|(_, shared)| *shared == Some(true))
        .map(|(name, _)| name)
        .collect();

    (!found.is_empty())
        .then(|| violation("host namespaces", found.join(", ")))
        .flatten()
}

fn host_paths(pod: &PodView<'_>) -> Option<Violation> {
    let volumes = pod
        .spec
        .volumes
        .iter()
        .flatten()
        .filter(|volume| volume.host_path.is_some());

    let names: Vec<&str> = volumes.map(|volume| volume.name.as_str()).collect();
    let detail = || {
        format!(
            "{} {}",
            counted("volume", "volumes", names.len()),
            quoted(&names)
        )
    };

    (!names.is_empty())
        .then(|| violation("hostPath volumes", detail()))
        .flatten()
}

fn host_ports(pod: &PodView<'_>) -> Option<Violation> {
    let of = |container: &ContainerView<'_>| -> Vec<String> {
        let ports = container
            .ports
            .iter()
            .filter_map(|port| port.host_port)
            .filter(|port| *port != 0);
        ports.map(|port| port.to_string()).collect()
    };
    let names = pod.named(|container| !of(container).is_empty());

    let ports: BTreeSet<String> = pod.containers.iter().flat_map(of).collect();
    let detail = || {
        format!(
            "{} {} {} {}",
            containers(&names),
            counted("uses", "use", names.len()),
            counted("hostPort", "hostPorts", ports.len()),
            sorted(&ports).join(", ")
        )
    };

    (!names.is_empty())
        .then(|| violation("hostPort", detail()))
        .flatten()
}

/// Probes and hooks with a host of their own.
fn hosts(pod: &PodView<'_>) -> Option<Violation> {
    let of = |container: &ContainerView<'_>| -> Vec<String> {
        let probes = container.probes.into_iter().flatten();
        let probed = probes.flat_map(|probe| {
            [
                probe
                    .http_get
                    .as_ref()
                    .and_then(|action| action.host.clone()),
                probe
                    .tcp_socket
                    .as_ref()
                    .and_then(|action| action.host.clone()),
            ]
        });

        let hooks = container
            .lifecycle
            .into_iter()
            .flat_map(|lifecycle| [&lifecycle.post_start, &lifecycle.pre_stop]);

        let hooked = hooks.flatten().flat_map(|hook| {
            [
                hook.http_get
                    .as_ref()
                    .and_then(|action| action.host.clone()),
                hook.tcp_socket
                    .as_ref()
                    .and_then(|action| action.host.clone()),
            ]
        });

        probed
            .chain(hooked)
            .flatten()
            .filter(|host| !host.is_empty())
            .collect()
    };

    let names: BTreeSet<String> = pod
        .named(|container| !of(container).is_empty())
        .into_iter()
        .map(str::to_owned)
        .collect();

    let hosts: BTreeSet<String> = pod.containers.iter().flat_map(of).collect();
    let detail = || {
        format!(
            "{} {} {} {}",
            containers(&sorted(&names)),
            counted("uses", "use", names.len()),
            counted(
                "probe or lifecycle host",
                "probe or lifecycle hosts",
                hosts.len()
            ),
            quoted(&sorted(&hosts))
        )
    };

    (!names.is_empty())
        .then(|| violation("probe or lifecycle host", detail()))
        .flatten()
}

fn privileged(pod: &PodView<'_>) -> Option<Violation> {
    let names = pod.named(|container| {
        container
            .security
            .is_some_and(|security| security.privileged == Some(true))
    });

    let detail = || {
        format!(
            "{} must not set securityContext.privileged=true",
            containers(&names)
        )
    };

    (!names.is_empty())
        .then(|| violation("privileged", detail()))
        .flatten()
}

pub(super) fn proc_mount(pod: &PodView<'_>) -> Option<Violation> {
    let of = |container: &ContainerView<'_>| {
        container
            .security
            .and_then(|security| security.proc_mount.clone())
            .filter(|mount| mount != "Default")
    };
    let names = pod.named(|container| of(container).is_some());

    let mounts: BTreeSet<String> = pod.containers.iter().filter_map(of).collect();
    let detail = || {
        format!(
            "{} must not set securityContext.procMount to {}",
            containers(&names),
            quoted(&sorted(&mounts))
        )
    };

    (!names.is_empty())
        .then(|| violation("procMount", detail()))
        .flatten()
}

fn selinux(pod: &PodView<'_>, minor: u32) -> Option<Violation> {
    let known = [
        "",
        "container_t",
        "container_init_t",
        "container_kvm_t",
        "container_engine_t",
    ];
    let known = if minor >= 31 { &known[..] } else { &known[..4] };

    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let bad_type = |options: &SELinuxOptions| !known.contains(&text(&options.type_).as_str());
    let is_bad = |options: &&SELinuxOptions| {
        bad_type(options) || !text(&options.user).is_empty() || !text(&options.role).is_empty()
    };
    let whole = pod
        .security()
        .and_then(|security| security.se_linux_options.as_ref())
        .filter(is_bad);

    let of = |container: &ContainerView<'_>| {
        let options = container
            .security
            .and_then(|security| security.se_linux_options.as_ref());
        options.filter(is_bad).cloned()
    };
    let names = pod.named(|container| of(container).is_some());
    let by = setters(whole.is_some(), &names)?;

    let all: Vec<SELinuxOptions> = whole
        .cloned()
        .into_iter()
        .chain(pod.containers.iter().filter_map(of))
        .collect();

    let types: BTreeSet<String> = all
        .iter()
        .filter(|options| bad_type(options))
        .map(|options| text(&options.type_))
        .collect();

    let mut wrong = Vec::new();
    if !types.is_empty() {
        wrong.push(format!(
            "{} {}",
            counted("type", "types", types.len()),
            quoted(&sorted(&types))
        ));
    }

    if all.iter().any(|options| !text(&options.user).is_empty()) {
        wrong.push("user may not be set".to_owned());
    }

    if all.iter().any(|options| !text(&options.role).is_empty()) {
        wrong.push("role may not be set".to_owned());
    }

    violation(
        "seLinuxOptions",
        format!(
            "{by} set forbidden securityContext.seLinuxOptions: {}",
            wrong.join("; ")
        ),
    )
}

/// Before there was a field.
fn seccomp_annotations(pod: &PodView<'_>) -> Option<Violation> {
    const POD: &str = "seccomp.security.alpha.kubernetes.io/pod";

    let keys = pod
        .containers
        .iter()
        .map(|container| {
            format!(
                "container.seccomp.security.alpha.kubernetes.io/{}",
                container.name
            )
        })
        .chain([POD.to_owned()]);

    let is_bad = |value: &&str| {
        !matches!(*value, "runtime/default" | "docker/default") && !value.starts_with("localhost/")
    };
    let bad: BTreeSet<String> = keys
        .filter_map(|key| {
            let value = pod
                .annotations?
                .get(&key)
                .and_then(Value::as_str)
                .filter(is_bad)?;
            Some(format!("{key}={}", Quoted(value)))
        })
        .collect();

    let detail = || {
        format!(
            "forbidden {} {}",
            counted("annotation", "annotations", bad.len()),
            sorted(&bad).join(", ")
        )
    };

    (!bad.is_empty())
        .then(|| violation("seccompProfile", detail()))
        .flatten()
}

fn seccomp(pod: &PodView<'_>) -> Option<Violation> {
    let whole = seccomp_of_pod(pod).filter(|kind| !is_good_seccomp(kind));
    let of =
        |container: &ContainerView<'_>| seccomp_of(container).filter(|kind| !is_good_seccomp(kind));
    let names = pod.named(|container| of(container).is_some());
    let by = setters(whole.is_some(), &names)?;
    let kinds: BTreeSet<String> = whole
        .into_iter()
        .chain(pod.containers.iter().filter_map(of))
        .collect();

    let detail = format!(
        "{by} must not set securityContext.seccompProfile.type to {}",
        quoted(&sorted(&kinds))
    );

    violation("seccompProfile", detail)
}

pub(super) fn seccomp_of_pod(pod: &PodView<'_>) -> Option<String> {
    Some(pod.security()?.seccomp_profile.as_ref()?.type_.clone())
}

pub(super) fn seccomp_of(container: &ContainerView<'_>) -> Option<String> {
    Some(container.security?.seccomp_profile.as_ref()?.type_.clone())
}

pub(super) fn is_good_seccomp(kind: &str) -> bool {
    matches!(kind, "Localhost" | "RuntimeDefault")
}

fn sysctls(pod: &PodView<'_>, minor: u32) -> Option<Violation> {
    /// Each with the minor version that it is harmless from.
    const HARMLESS: [(&str, u32); 12] = [
        ("kernel.shm_rmid_forced", 0),
        ("net.ipv4.ip_local_port_range", 0),
        ("net.ipv4.tcp_syncookies", 0),
        ("net.ipv4.ping_group_range", 0),
        ("net.ipv4.ip_unprivileged_port_start", 0),
        ("net.ipv4.ip_local_reserved_ports", 27),
        ("net.ipv4.tcp_keepalive_time", 29),
        ("net.ipv4.tcp_fin_timeout", 29),
        ("net.ipv4.tcp_keepalive_intvl", 29),
        ("net.ipv4.tcp_keepalive_probes", 29),
        ("net.ipv4.tcp_rmem", 32),
        ("net.ipv4.tcp_wmem", 32),
    ];

    let given = pod
        .security()
        .and_then(|security| security.sysctls.as_ref())
        .into_iter()
        .flatten();

    let is_harmless = |name: &str| {
        HARMLESS
            .iter()
            .any(|(known, from)| *known == name && minor >= *from)
    };

    let bad: Vec<&str> = given
        .map(|sysctl| sysctl.name.as_str())
        .filter(|name| !is_harmless(name))
        .collect();

    (!bad.is_empty())
        .then(|| violation("forbidden sysctls", bad.join(", ")))
        .flatten()
}

fn host_process(pod: &PodView<'_>) -> Option<Violation> {
    let whole = pod
        .security()
        .and_then(|security| security.windows_options.as_ref());
    let names = pod.named(|container| {
        let options = container
            .security
            .and_then(|security| security.windows_options.as_ref());
        options.is_some_and(|options| options.host_process == Some(true))
    });

    let by = setters(
        whole.is_some_and(|options| options.host_process == Some(true)),
        &names,
    )?;

    violation(
        "hostProcess",
        format!("{by} must not set securityContext.windowsOptions.hostProcess=true"),
    )
}
