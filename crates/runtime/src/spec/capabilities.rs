//! Capabilities of a container: the default set with those added and dropped.

use coracle_cri::v1::LinuxContainerSecurityContext;

use crate::error::Error;

/// The default capabilities of a container.
const DEFAULT: [&str; 14] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "FSETID",
    "FOWNER",
    "MKNOD",
    "NET_RAW",
    "SETGID",
    "SETUID",
    "SETFCAP",
    "SETPCAP",
    "NET_BIND_SERVICE",
    "SYS_CHROOT",
    "KILL",
    "AUDIT_WRITE",
];

/// The kernel's capabilities, indexed by number.
const NAMES: [&str; 41] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
];

/// The permitted set of a container, as a bit mask.
pub(crate) fn permitted(security: &LinuxContainerSecurityContext) -> Result<u64, Error> {
    let available = available();
    if security.privileged {
        return Ok(available);
    }

    let changes = security.capabilities.clone().unwrap_or_default();
    let all = |names: &[String]| names.iter().any(|name| name.eq_ignore_ascii_case("ALL"));

    let mut set = if all(&changes.add_capabilities) {
        available
    } else if all(&changes.drop_capabilities) {
        0
    } else {
        named(&DEFAULT.map(str::to_owned))?
    };
    set |= named(&changes.add_capabilities)?;

    set &= !named(&changes.drop_capabilities)?;

    // A container cannot have what the host lacks.
    Ok(set & available)
}

/// The ambient set, which non-root programs keep.
pub(super) fn ambient(security: &LinuxContainerSecurityContext) -> Result<u64, Error> {
    let changes = security.capabilities.clone().unwrap_or_default();
    Ok(named(&changes.add_ambient_capabilities)? & available())
}

/// Whether a set has a capability.
pub(super) fn has(set: u64, name: &str) -> bool {
    bit(name).is_some_and(|bit| set & bit != 0)
}

fn named(names: &[String]) -> Result<u64, Error> {
    let wanted = names
        .iter()
        .filter(|name| !name.eq_ignore_ascii_case("ALL"));
    wanted
        .map(|name| bit(name).ok_or_else(|| Error::Invalid(format!("unknown capability {name:?}"))))
        .try_fold(0, |set, bit| Ok(set | bit?))
}

/// With or without `CAP_`, in any case.
fn bit(name: &str) -> Option<u64> {
    let name = name.to_ascii_uppercase();
    let name = name.strip_prefix("CAP_").unwrap_or(&name);
    NAMES
        .iter()
        .position(|known| *known == name)
        .map(|number| 1 << number)
}

/// The capabilities of this process, which it can grant.
fn available() -> u64 {
    let all = (1 << NAMES.len()) - 1;
    rustix::thread::capabilities(None).map_or(all, |sets| sets.permitted.bits() & all)
}

#[cfg(test)]
mod tests {
    use coracle_cri::v1::Capability;

    use super::*;

    fn check(add: &[&str], drop: &[&str], has_these: &[&str], has_not: &[&str]) {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let capabilities = Capability {
            add_capabilities: texts(add),
            drop_capabilities: texts(drop),
            ..Default::default()
        };

        let security = LinuxContainerSecurityContext {
            capabilities: Some(capabilities),
            ..Default::default()
        };
        let set = permitted(&security).unwrap();
        has_these
            .iter()
            .for_each(|name| assert!(has(set, name), "{name} with {add:?} without {drop:?}"));

        has_not
            .iter()
            .for_each(|name| assert!(!has(set, name), "{name} with {add:?} without {drop:?}"));
    }

    #[test]
    fn capabilities_are_added_to_the_default_and_dropped_from_it() {
        check(
            &[],
            &[],
            &["CHOWN", "AUDIT_WRITE"],
            &["SYS_ADMIN", "NET_ADMIN"],
        );

        check(
            &["NET_ADMIN"],
            &["CHOWN"],
            &["NET_ADMIN", "KILL"],
            &["CHOWN"],
        );

        check(
            &["cap_net_admin"],
            &["ALL"],
            &["NET_ADMIN"],
            &["CHOWN", "KILL"],
        );

        check(
            &["ALL"],
            &["SYS_ADMIN"],
            &["NET_ADMIN", "CHOWN"],
            &["SYS_ADMIN"],
        );
    }
}
