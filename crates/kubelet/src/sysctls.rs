//! Which kernel parameters a pod may set: those that are namespaced and safe, and those that the
//! configuration allows. Pure.

use k8s_openapi::api::core::v1::Pod;

use crate::pod::PodView;

/// Upstream's safe sysctls.
const SAFE: [&str; 12] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_wmem",
];

/// Why a pod may not set its sysctls. `allowed` are names, or prefixes followed by `*`.
pub(crate) fn forbidden(pod: &Pod, allowed: &[String]) -> Option<String> {
    let spec = pod.pod_spec();
    let wanted = spec
        .security_context
        .as_ref()
        .and_then(|context| context.sysctls.as_ref());

    let refused = |name: &str| {
        let known = SAFE.contains(&name) || allowed.iter().any(|pattern| matches(pattern, name));
        if !known {
            Some(format!("{name:?} not allowlisted"))
        } else if name.starts_with("net.") && pod.is_host_network() {
            Some(format!("{name:?} not allowed with host net enabled"))
        } else if of_ipc(name) && spec.host_ipc == Some(true) {
            Some(format!("{name:?} not allowed with host ipc enabled"))
        } else {
            None
        }
    };

    let found = wanted
        .into_iter()
        .flatten()
        .find_map(|sysctl| refused(&sysctl.name.replace('/', ".")));

    found.map(|why| format!("forbidden sysctl: {why}"))
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => pattern == name,
    }
}

/// Whether it belongs to an IPC namespace.
fn of_ipc(name: &str) -> bool {
    name == "kernel.sem"
        || ["kernel.shm", "kernel.msg", "fs.mqueue."]
            .iter()
            .any(|part| name.starts_with(part))
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::yaml;
    use coracle_api::typed;

    use super::*;

    #[test]
    fn a_pod_sets_what_is_safe_or_allowed() {
        let allowed = ["kernel.msg*".to_owned(), "net.core.somaxconn".to_owned()];
        for (name, more, expected) in [
            ("net.ipv4.tcp_syncookies", "", None),
            ("net/ipv4/tcp_syncookies", "", None),
            ("kernel.msgmax", "", None),
            ("net.core.somaxconn", "", None),
            (
                "net.core.somaxconn2",
                "",
                Some(r#""net.core.somaxconn2" not allowlisted"#),
            ),
            (
                "kernel.shmmax",
                "",
                Some(r#""kernel.shmmax" not allowlisted"#),
            ),
            (
                "net.ipv4.tcp_rmem",
                "hostNetwork: true",
                Some(r#""net.ipv4.tcp_rmem" not allowed with host net enabled"#),
            ),
            (
                "kernel.msgmax",
                "hostIPC: true",
                Some(r#""kernel.msgmax" not allowed with host ipc enabled"#),
            ),
            ("kernel.msgmax", "hostNetwork: true", None),
        ] {
            let text = format!(
                "{{apiVersion: v1, kind: Pod, metadata: {{name: p}}, spec: {{containers: [], {more}{} \
                securityContext: {{sysctls: [{{name: {name}, value: '1'}}]}}}}}}",
                if more.is_empty() { "" } else { "," }
            );
            let pod: Pod = typed::from_tree(&yaml::decode(text.as_bytes()).unwrap()).unwrap();
            let expected = expected.map(|why| format!("forbidden sysctl: {why}"));
            assert_eq!(forbidden(&pod, &allowed), expected, "{name} {more}");
        }
    }
}
