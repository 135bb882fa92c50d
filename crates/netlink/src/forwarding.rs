//! Lets this network namespace forward packets.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::Version;

/// Why forwarding could not be enabled.
#[derive(Debug, thiserror::Error)]
#[error("cannot set {setting:?}, which pod networking needs")]
pub struct ForwardingError {
    setting: PathBuf,
    source: io::Error,
}

/// Enables forwarding of a version. Idempotent; needs no permission where it is enabled already.
///
/// A machine that forwards IPv6 takes no router advertisements, by which it may have got its
/// addresses and its default route: they would expire. So interfaces that take them now are told to
/// take them nevertheless.
pub fn enable_forwarding(version: Version) -> Result<(), ForwardingError> {
    let setting = Path::new(match version {
        Version::V4 => "/proc/sys/net/ipv4/ip_forward",
        Version::V6 => "/proc/sys/net/ipv6/conf/all/forwarding",
    });

    if read(setting)? == "1" {
        return Ok(());
    }
    if version == Version::V6 {
        keep_router_advertisements()?;
    }
    write(setting, "1")
}

/// Of interfaces: whether they take router advertisements if the machine does not forward (1), or
/// always (2).
const INTERFACES: &str = "/proc/sys/net/ipv6/conf";
const IF_NOT_FORWARDING: &str = "1";
const ALWAYS: &str = "2";

fn keep_router_advertisements() -> Result<(), ForwardingError> {
    let listed = fs::read_dir(INTERFACES).map_err(|source| ForwardingError {
        setting: PathBuf::from(INTERFACES),
        source,
    })?;

    for interface in listed.flatten() {
        // Interfaces to come are those of pods, which take none.
        if ["all", "default"].contains(&interface.file_name().to_string_lossy().as_ref()) {
            continue;
        }
        let setting = interface.path().join("accept_ra");
        let kept = match read(&setting) {
            Ok(now) if now == IF_NOT_FORWARDING => write(&setting, ALWAYS),
            other => other.map(drop),
        };
        match kept {
            // The interface has just gone.
            Err(error) if error.source.kind() == io::ErrorKind::NotFound => {}
            done => done?,
        }
    }

    Ok(())
}

fn read(setting: &Path) -> Result<String, ForwardingError> {
    let text = fs::read_to_string(setting).map_err(|source| ForwardingError {
        setting: setting.to_owned(),
        source,
    })?;
    Ok(text.trim().to_owned())
}

fn write(setting: &Path, value: &str) -> Result<(), ForwardingError> {
    fs::write(setting, value).map_err(|source| ForwardingError {
        setting: setting.to_owned(),
        source,
    })
}

#[cfg(test)]
#[path = "../tests/namespaces/mod.rs"]
mod namespaces;

#[cfg(test)]
mod tests {
    use super::namespaces::Namespace;
    use super::*;

    /// A machine that forwards would ignore router advertisements, by which it may have its addresses.
    #[test]
    fn router_advertisements_are_kept_when_forwarding_begins() {
        let namespace = Namespace::new();
        assert!(namespace.path().exists());
        namespace.run("ip", "link add br0 type bridge");
        namespace.run("ip", "link add br1 type bridge");
        let setting = |name: &str| format!("/proc/sys/net/ipv6/conf/{name}");
        let read = |name: &str| {
            namespace.inside(|| fs::read_to_string(setting(name)).unwrap().trim().to_owned())
        };
        for (name, value) in [("br0/accept_ra", "1"), ("br1/accept_ra", "0")] {
            namespace.inside(|| fs::write(setting(name), value).unwrap());
        }

        for _ in 0..2 {
            for version in Version::BOTH {
                namespace.inside(|| enable_forwarding(version)).unwrap();
            }
            assert_eq!(read("all/forwarding"), "1");
            assert_eq!([read("br0/accept_ra"), read("br1/accept_ra")], ["2", "0"]);
        }
    }
}
