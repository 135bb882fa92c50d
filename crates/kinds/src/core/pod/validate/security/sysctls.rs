//! `sysctls`.

use std::collections::BTreeSet;

use coracle_api::Path;
use coracle_api::field_error::FieldError;
use coracle_api::go_text::Quoted;
use k8s_openapi::api::core::v1::{PodSpec, Sysctl};

use super::super::{Frame, validate_required};
use crate::strategy::Errors;

const LENGTH: usize = 253;
const BAD_NAME: &str = "must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";

pub(super) fn validate_sysctls(
    sysctls: &[Sysctl],
    frame: &Frame<'_>,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let mut seen = BTreeSet::new();
    for (index, sysctl) in sysctls.iter().enumerate() {
        let at = at.index(index);
        let (at, name) = (at.field("name"), sysctl.name.as_str());
        let again = !seen.insert(name);
        validate_required(name, &at, errors);

        if !name.is_empty() && !is_name(name) {
            errors.push(FieldError::invalid_str(&at, name, BAD_NAME));
        } else if !name.is_empty() && again {
            errors.push(FieldError::duplicate(&at, Quoted(name).to_string()));
        }

        if !frame.options.sysctls_of_the_host
            && let Some(detail) = of_the_host(name, frame.spec)
        {
            errors.push(FieldError::invalid_str(&at, name, detail));
        }
    }
}

/// Why a pod may not set a sysctl: it would change the node's.
pub(in crate::core::pod) fn of_the_host(name: &str, spec: &PodSpec) -> Option<&'static str> {
    let name = normal(name);
    let name = name.split('*').next().unwrap_or_default();
    if name.starts_with("net.") {
        return (spec.host_network == Some(true))
            .then_some("may not be specified when 'hostNetwork' is true");
    }
    let of_ipc = name.starts_with("fs.mqueue.") || OF_IPC.contains(&name);
    (of_ipc && spec.host_ipc == Some(true)).then_some("may not be specified when 'hostIPC' is true")
}

/// The sysctls of the IPC namespace.
const OF_IPC: &[&str] = &[
    "kernel.sem",
    "kernel.shmall",
    "kernel.shmmax",
    "kernel.shmmni",
    "kernel.shm_rmid_forced",
    "kernel.shm",
    "kernel.msgmax",
    "kernel.msgmnb",
    "kernel.msgmni",
    "kernel.msg",
];

/// The name with dots between its parts: where the first separator is a slash, dots and slashes are
/// swapped.
fn normal(name: &str) -> String {
    match name.find(['.', '/']) {
        Some(first) if name[first..].starts_with('/') => {
            let exchanged = name.chars().map(|letter| match letter {
                '.' => '/',
                '/' => '.',
                other => other,
            });
            exchanged.collect()
        }
        _ => name.to_owned(),
    }
}

fn is_name(name: &str) -> bool {
    let is_part = |part: &str| {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let bytes = part.as_bytes();
        bytes.first().copied().is_some_and(inner)
            && bytes.last().copied().is_some_and(inner)
            && bytes
                .iter()
                .all(|byte| inner(*byte) || matches!(byte, b'-' | b'_'))
    };
    name.len() <= LENGTH && name.split(['.', '/']).all(is_part)
}
