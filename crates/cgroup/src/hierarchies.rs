//! The cgroup hierarchies that the host has mounted.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::Error;
use crate::group::Group;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    V1,
    V2,
}

/// The cgroup hierarchies of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hierarchies {
    /// The mount of each controller. Some share a mount; named hierarchies have the key `name=…`.
    V1 {
        controllers: Arc<BTreeMap<String, PathBuf>>,
    },
    V2 {
        root: PathBuf,
    },
}

impl Hierarchies {
    /// Detects the hierarchies that this process sees. If both versions are mounted, version 1 is
    /// used if it has the controllers.
    pub fn detect() -> Result<Self, Error> {
        let path = Path::new("/proc/self/mountinfo");
        let text = fs::read_to_string(path).map_err(Error::io("read", path))?;
        Self::parse(&text).ok_or(Error::NotMounted)
    }

    pub fn version(&self) -> Version {
        match self {
            Hierarchies::V1 { .. } => Version::V1,
            Hierarchies::V2 { .. } => Version::V2,
        }
    }

    /// The group at a path such as `/kubepods/besteffort`. It need not exist.
    pub fn group(&self, path: &str) -> Group {
        Group::new(self.clone(), path.trim_matches('/'))
    }

    /// The mounts in which a group is created, each once.
    pub fn mounts(&self) -> Vec<&Path> {
        match self {
            Hierarchies::V2 { root } => vec![root],
            Hierarchies::V1 { controllers } => {
                let mut mounts: Vec<&Path> = controllers.values().map(PathBuf::as_path).collect();
                mounts.sort();
                mounts.dedup();
                mounts
            }
        }
    }

    /// Whether a new group in this mount is unusable until it gets values of its parent (cpuset).
    pub(crate) fn needs_parent_values(&self, mount: &Path) -> bool {
        match self {
            Hierarchies::V2 { .. } => true,
            Hierarchies::V1 { controllers } => controllers
                .get("cpuset")
                .is_some_and(|cpuset| cpuset == mount),
        }
    }

    fn parse(mountinfo: &str) -> Option<Self> {
        let mut controllers = BTreeMap::new();
        let mut unified = None;
        for line in mountinfo.lines() {
            let Some((front, back)) = line.split_once(" - ") else {
                continue;
            };
            let Some(place) = front.split(' ').nth(4) else {
                continue;
            };

            let mut back = back.split(' ');
            match back.next() {
                Some("cgroup2") => unified = unified.or(Some(PathBuf::from(place))),
                Some("cgroup") => {
                    let options = back.nth(1).unwrap_or_default();
                    for option in options.split(',').filter(|option| is_controller(option)) {
                        controllers
                            .entry(option.to_owned())
                            .or_insert_with(|| PathBuf::from(place));
                    }
                }
                _ => {}
            }
        }

        if controllers.contains_key("memory") || controllers.contains_key("cpu") {
            return Some(Hierarchies::V1 {
                controllers: Arc::new(controllers),
            });
        }

        unified.map(|root| Hierarchies::V2 { root })
    }
}

/// Mount options of a cgroup mount that are not controllers.
fn is_controller(option: &str) -> bool {
    let plain = matches!(
        option,
        "rw" | "ro" | "xattr" | "noprefix" | "clone_children" | "cpuset_v2_mode"
    );
    !plain && !option.starts_with("release_agent=")
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIFIED: &str = "30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
    const HYBRID: &str = "\
        31 30 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
        32 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
        33 30 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
        34 30 0:30 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n";

    #[test]
    fn a_host_of_one_hierarchy_is_of_version_two() {
        assert_eq!(
            Hierarchies::parse(UNIFIED),
            Some(Hierarchies::V2 {
                root: "/sys/fs/cgroup".into()
            })
        );
    }

    #[test]
    fn a_host_of_both_is_of_the_version_that_has_the_controllers() {
        let Some(Hierarchies::V1 { controllers }) = Hierarchies::parse(HYBRID) else {
            panic!("version 1")
        };
        let names: Vec<&str> = controllers.keys().map(String::as_str).collect();
        assert_eq!(names, ["cpu", "cpuacct", "memory", "name=systemd"]);
        assert_eq!(controllers["cpu"], controllers["cpuacct"]);
    }

    #[test]
    fn a_host_without_any_has_none() {
        assert_eq!(
            Hierarchies::parse("25 1 8:1 / / rw - ext4 /dev/sda rw\n"),
            None
        );
    }
}
