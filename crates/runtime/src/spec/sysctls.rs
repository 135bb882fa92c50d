//! Sysctls of a pod: only namespaced ones are allowed, since all others would change the host.

use crate::error::Error;

/// Which namespaces of a pod are its own.
pub(crate) struct OwnNamespaces {
    pub(crate) network: bool,
    pub(crate) ipc: bool,
    pub(crate) uts: bool,
}

/// Settings of the IPC namespace; besides these, all of `fs.mqueue`.
const IPC: [&str; 8] = [
    "kernel.msgmax",
    "kernel.msgmnb",
    "kernel.msgmni",
    "kernel.sem",
    "kernel.shmall",
    "kernel.shmmax",
    "kernel.shmmni",
    "kernel.shm_rmid_forced",
];

/// Refuses a sysctl that is not namespaced in this pod. The error texts are those of other
/// runtimes.
pub(crate) fn check(name: &str, own: &OwnNamespaces) -> Result<(), Error> {
    let refused = |why: &str| Err(Error::Invalid(format!("sysctl {name:?} {why}")));
    let is_own = if IPC.contains(&name) || name.starts_with("fs.mqueue.") {
        own.ipc
    } else if name.starts_with("net.") {
        own.network
    } else if name == "kernel.domainname" {
        own.uts
    } else {
        false
    };

    // An invalid name could escape `/proc/sys`.
    let is_name = name
        .split('.')
        .all(|part| !part.is_empty() && !part.contains('/'));
    match (is_name, is_own) {
        (true, true) => Ok(()),
        (true, false) => refused("is not in a separate kernel namespace"),
        (false, _) => refused("is not a valid sysctl name"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sysctls_of_the_host_are_refused() {
        let all = OwnNamespaces {
            network: true,
            ipc: true,
            uts: true,
        };

        let none = OwnNamespaces {
            network: false,
            ipc: false,
            uts: false,
        };

        let good = [
            "net.ipv4.ip_unprivileged_port_start",
            "kernel.shm_rmid_forced",
            "kernel.domainname",
            "fs.mqueue.msg_max",
        ];

        for name in good {
            assert!(check(name, &all).is_ok(), "{name}");
            assert!(check(name, &none).is_err(), "{name}");
        }

        let bad = [
            "kernel.core_pattern",
            "kernel.hostname",
            "vm.swappiness",
            "fs.file-max",
            "net",
            "net.",
            "net./../kernel.core_pattern",
            "net.ipv4/../../kernel/core_pattern",
            "",
        ];

        for name in bad {
            assert!(check(name, &all).is_err(), "{name}");
        }
    }
}
