//! `emptyDir` volumes: directories on disk or in memory. Volumes of files use them too.

use std::ffi::CString;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;
use std::str::FromStr as _;

use async_trait::async_trait;
use coracle_api::go_text::Quoted;
use coracle_api::quantity::Quantity;
use coracle_files::remove_tree;
use k8s_openapi::api::core::v1::{EmptyDirVolumeSource, Pod, Volume};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Written;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use super::mount_table::is_mount_point;
use super::ownership::{Access, Group};
use super::plugin::{Context, SetUp, SetUpError, VolumePlugin};
use crate::downward::Amounts;
use crate::pod::PodView as _;

/// Directory of its volumes.
pub(super) const DIRECTORY: &str = "kubernetes.io~empty-dir";

pub(super) struct EmptyDirPlugin;

#[async_trait]
impl VolumePlugin for EmptyDirPlugin {
    fn can_support(&self, volume: &Volume) -> bool {
        volume.empty_dir.is_some()
    }

    fn directory(&self) -> Option<&'static str> {
        Some(DIRECTORY)
    }

    fn is_writable(&self) -> bool {
        true
    }

    async fn prepare(&self, volume: &Volume, context: &Context<'_>) -> Result<SetUp, SetUpError> {
        let source = volume.empty_dir.clone().unwrap_or_default();
        let medium = Medium::of(&source, context.pod, &context.node)?;
        Ok(SetUp::new(move |location| {
            let (dir, marker) = (&location.dir, &location.marker);
            Ok(set_up(dir, marker, &medium, location.group.as_ref())?)
        }))
    }
}

/// The storage medium.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Medium {
    Disk,
    /// A tmpfs of at most this size; 0: the kernel's default.
    Memory {
        size: u64,
    },
}

/// Why a directory is not available.
#[derive(Debug, thiserror::Error)]
pub(super) enum EmptyDirError {
    #[error("unknown storage medium {}", Quoted(.0))]
    Medium(String),
    #[error("{0} storage medium is not supported by this node")]
    HugePages(String),
    #[error("{what} {path}: {source}")]
    Io {
        what: &'static str,
        path: String,
        source: io::Error,
    },
}

impl Medium {
    /// The medium of a volume.
    pub(super) fn of(
        wanted: &EmptyDirVolumeSource,
        pod: &Pod,
        node: &Amounts,
    ) -> Result<Medium, EmptyDirError> {
        match wanted.medium.as_deref().unwrap_or_default() {
            "" => Ok(Medium::Disk),
            "Memory" => Ok(Medium::Memory {
                size: memory_size(wanted.size_limit.as_ref(), pod, node),
            }),
            medium if medium.starts_with("HugePages") => {
                Err(EmptyDirError::HugePages(medium.to_owned()))
            }
            medium => Err(EmptyDirError::Medium(medium.to_owned())),
        }
    }
}

/// The size of a tmpfs: the smallest of the requested limit, the pod's memory limit and the node's
/// memory.
pub(super) fn memory_size(limit: Option<&Written>, pod: &Pod, node: &Amounts) -> u64 {
    let bytes = |amount: &Written| {
        let amount = Quantity::from_str(&amount.0).ok()?;
        u64::try_from(amount.value())
            .ok()
            .filter(|bytes| *bytes > 0)
    };
    let node = node.get("memory").and_then(bytes);
    let smallest = [node, pod_memory(pod), limit.and_then(bytes)]
        .into_iter()
        .flatten()
        .min();

    smallest.unwrap_or(0)
}

/// A pod's memory limit: pod-level, or the sum of its containers' if all have one.
fn pod_memory(pod: &Pod) -> Option<u64> {
    let bytes = |limits: Option<&Amounts>| {
        let amount = Quantity::from_str(&limits?.get("memory")?.0).ok()?;
        u64::try_from(amount.value())
            .ok()
            .filter(|bytes| *bytes > 0)
    };

    let spec = pod.pod_spec();
    if let Some(of_pod) = bytes(
        spec.resources
            .as_ref()
            .and_then(|resources| resources.limits.as_ref()),
    ) {
        return Some(of_pod);
    }

    let mut sum = 0;
    for container in &spec.containers {
        sum += bytes(container.resources.as_ref()?.limits.as_ref())?;
    }

    // Sidecars run at the same time as main containers; other init containers run one at a time
    // before.
    let mut most = 0;
    for container in spec.init_containers.iter().flatten() {
        let limit = bytes(container.resources.as_ref()?.limits.as_ref())?;
        match container.restart_policy.as_deref() {
            Some("Always") => sum += limit,
            _ => most = most.max(limit),
        }
    }

    Some(sum.max(most)).filter(|bytes| *bytes > 0)
}

/// Creates a directory, unless its marker exists.
pub(super) fn set_up(
    dir: &Path,
    marker: &Path,
    medium: &Medium,
    group: Option<&Group>,
) -> Result<(), EmptyDirError> {
    if !make(dir, medium, marker.join("ready").exists() && dir.exists())? {
        return Ok(());
    }

    if let Some(group) = group {
        group
            .take_all(dir, Access::Write)
            .map_err(|source| failed("chown", dir, source))?;
    }

    let mark = || -> io::Result<()> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o750)
            .create(marker)?;
        fs::write(marker.join("ready"), "")
    };

    mark().map_err(|source| failed("create", marker, source))
}

/// Creates a directory on its medium, unless it is ready; returns whether it did.
pub(super) fn make(dir: &Path, medium: &Medium, is_ready: bool) -> Result<bool, EmptyDirError> {
    let in_memory = is_mount_point(dir).map_err(|source| failed("stat", dir, source))?;
    let wants_memory = matches!(medium, Medium::Memory { .. });
    if is_ready && (in_memory || !wants_memory) {
        return Ok(false);
    }
    make_dir(dir)?;
    if let (Medium::Memory { size }, false) = (medium, in_memory) {
        mount_memory(dir, *size).map_err(|source| failed("mount tmpfs", dir, source))?;
    }
    Ok(true)
}

/// Removes a directory on any medium. Idempotent.
pub(super) fn tear_down(dir: &Path, marker: &Path) -> Result<(), EmptyDirError> {
    // The marker first: a half-removed directory must not look ready.
    remove_tree(marker).map_err(|source| failed("remove", marker, source))?;
    while is_mount_point(dir).map_err(|source| failed("stat", dir, source))? {
        unmount(dir, UnmountFlags::NOFOLLOW)
            .map_err(|error| failed("unmount", dir, error.into()))?;
    }
    remove_tree(dir).map_err(|source| failed("remove", dir, source))
}

/// The directory is world-writable, regardless of the umask; its parents belong to the kubelet.
fn make_dir(dir: &Path) -> Result<(), EmptyDirError> {
    let make = || -> io::Result<()> {
        if let Some(parent) = dir.parent() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o750)
                .create(parent)?;
        }

        match fs::create_dir(dir) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made?,
        }

        fs::set_permissions(dir, Permissions::from_mode(0o777))
    };

    make().map_err(|source| failed("mkdir", dir, source))
}

/// Mounts a tmpfs, without swap if the kernel supports that.
fn mount_memory(dir: &Path, size: u64) -> io::Result<()> {
    let size = if size > 0 {
        format!("size={size}")
    } else {
        String::new()
    };

    let options = [
        format!("{size},noswap").trim_start_matches(',').to_owned(),
        size,
    ];

    let mut refused = rustix::io::Errno::INVAL;
    for options in options {
        let options = CString::new(options)?;
        match mount(
            "tmpfs",
            dir,
            "tmpfs",
            MountFlags::empty(),
            options.as_c_str(),
        ) {
            Err(rustix::io::Errno::INVAL) => refused = rustix::io::Errno::INVAL,
            done => return Ok(done?),
        }
    }

    Err(refused.into())
}

fn failed(what: &'static str, path: &Path, source: io::Error) -> EmptyDirError {
    EmptyDirError::Io {
        what,
        path: path.to_string_lossy().into_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tmpfs_has_the_smallest_of_all_limits() {
        let check = |limit: Option<&str>, pod: &str, node: &str, expected: u64| {
            let pod: Pod = serde_json::from_str(&format!(r#"{{"spec":{pod}}}"#)).unwrap();
            let node: Amounts = serde_json::from_str(node).unwrap();
            let limit = limit.map(|limit| Written(limit.to_owned()));
            assert_eq!(
                memory_size(limit.as_ref(), &pod, &node),
                expected,
                "{limit:?} {pod:?} {node:?}"
            );
        };

        let bare = r#"{"containers":[{"name":"a"}]}"#;
        let limited = r#"{"containers":[{"name":"a","resources":{"limits":{"memory":"20Mi"}}},{"name":"b","resources":{"limits":{"memory":"10Mi"}}}]}"#;
        let half = r#"{"containers":[{"name":"a","resources":{"limits":{"memory":"20Mi"}}},{"name":"b"}]}"#;
        let whole = r#"{"resources":{"limits":{"memory":"5Mi"}},"containers":[{"name":"a"}]}"#;
        let node = r#"{"memory":"100Mi"}"#;
        check(None, bare, node, 100 << 20);
        check(Some("1Mi"), bare, node, 1 << 20);

        check(Some("1Gi"), bare, node, 100 << 20);
        check(Some("0"), bare, node, 100 << 20);
        check(None, limited, node, 30 << 20);
        check(Some("25Mi"), limited, node, 25 << 20);
        check(None, half, node, 100 << 20);
        check(None, whole, node, 5 << 20);
        check(None, bare, "{}", 0);
    }
}
