//! Removes volumes by what is on disk.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use coracle_files::remove_tree;

use super::PLUGINS;
use super::mount_table::{mounted_below, unmount_all};
use crate::layout::Layout;
use crate::pod_manager::PodManager;

/// Why something remains.
#[derive(Debug, thiserror::Error)]
pub(super) enum RemovalError {
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error("{0}: still mounted")]
    Mounted(PathBuf),
    #[error("{0}: unknown volume plugin; not removed")]
    Foreign(PathBuf),
}

/// Removes all volumes of a pod. Everything is unmounted before anything is deleted; subpaths
/// first, as they are mounted from the volumes.
pub(super) fn remove_volumes(layout: &Layout, uid: &str) -> Result<(), RemovalError> {
    let volumes = layout.volumes(uid);
    let (known, foreign): (Vec<String>, Vec<String>) = names(&volumes)?
        .into_iter()
        .partition(|name| is_plugin_directory(name));
    let mut ours = vec![layout.volume_subpaths(uid), layout.pod(uid).join("plugins")];
    ours.extend(known.iter().map(|plugin| volumes.join(plugin)));
    remove_trees(&layout.pod(uid), &ours)?;

    for folder in foreign.iter().map(|plugin| volumes.join(plugin)) {
        if !names(&folder)?.is_empty() {
            return Err(RemovalError::Foreign(folder));
        }
    }

    remove(&volumes)
}

fn is_plugin_directory(name: &str) -> bool {
    PLUGINS
        .iter()
        .any(|plugin| plugin.directory() == Some(name))
}

/// Removes a pod's whole directory.
pub(super) fn remove_pod(layout: &Layout, uid: &str) -> Result<(), RemovalError> {
    remove_volumes(layout, uid)?;
    remove_trees(&layout.pod(uid), &[layout.pod(uid)])
}

/// The pods on disk that are not in the pod manager. Directories are listed first, as a pod is
/// added to the manager before it has a directory.
pub(super) fn orphans(
    layout: &Layout,
    pod_manager: &PodManager,
) -> Result<Vec<String>, RemovalError> {
    let there = names(&layout.pods())?;
    Ok(there
        .into_iter()
        .filter(|uid| !pod_manager.contains(uid))
        .collect())
}

/// Unmounts and removes directory trees of a pod. Nothing is removed while anything is still
/// mounted.
fn remove_trees(pod: &Path, trees: &[PathBuf]) -> Result<(), RemovalError> {
    let failed = |source| RemovalError::Io {
        path: pod.to_path_buf(),
        source,
    };

    let trees: Vec<PathBuf> = trees.iter().filter(|tree| tree.exists()).cloned().collect();
    if trees.is_empty() {
        return Ok(());
    }

    // The mount table has canonical paths.
    let whole = trees
        .iter()
        .map(|tree| tree.canonicalize())
        .collect::<io::Result<Vec<_>>>()
        .map_err(failed)?;

    let mounted = || -> io::Result<Vec<PathBuf>> {
        let all = mounted_below(pod)?.into_iter();
        Ok(all
            .filter(|place| whole.iter().any(|tree| place.starts_with(tree)))
            .collect())
    };
    let places = mounted().map_err(failed)?;
    unmount_all(&places).map_err(failed)?;

    if !places.is_empty()
        && let Some(place) = mounted().map_err(failed)?.into_iter().next()
    {
        return Err(RemovalError::Mounted(place));
    }

    trees.iter().try_for_each(|tree| remove(tree))
}

fn remove(folder: &Path) -> Result<(), RemovalError> {
    let failed = |source| RemovalError::Io {
        path: folder.to_path_buf(),
        source,
    };
    remove_tree(folder).map_err(failed)
}

/// The names in a directory; empty if it does not exist.
fn names(folder: &Path) -> Result<Vec<String>, RemovalError> {
    let failed = |source| RemovalError::Io {
        path: folder.to_path_buf(),
        source,
    };
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let names =
        entries.map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()));
    names.collect::<io::Result<_>>().map_err(failed)
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};

    use super::*;

    /// A pod can create as many nested directories in a second or two.
    #[test]
    fn a_deeply_nested_volume_is_removed() {
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        let layout = Layout::below(folder.path());
        let volume = layout.volume("uid", super::super::empty_dir::DIRECTORY, "v");
        fs::create_dir_all(&volume).unwrap();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;

        let mut here = openat(CWD, &volume, flags, Mode::empty()).unwrap();
        for _ in 0..40_000 {
            mkdirat(&here, "d", Mode::from_raw_mode(0o700)).unwrap();
            here = openat(&here, "d", flags, Mode::empty()).unwrap();
        }

        remove_pod(&layout, "uid").unwrap();
        assert!(!layout.pod("uid").exists());
    }
}
