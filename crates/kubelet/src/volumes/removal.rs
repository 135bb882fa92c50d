//! Taking volumes away, by what is on the disk alone.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::mount_table::{mounted_below, unmount_below};
use super::source::PLUGINS;
use crate::layout::Layout;
use crate::roster::Roster;

/// Why something is still there.
#[derive(Debug, thiserror::Error)]
pub(super) enum RemovalError {
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error("{0}: something is still mounted there")]
    Mounted(PathBuf),
    #[error("{0}: a volume of a kind that is not known here is left alone")]
    Foreign(PathBuf),
}

/// Takes all volumes of a pod away: parts of volumes first, as they are mounted from the others.
pub(super) fn remove_volumes(layout: &Layout, uid: &str) -> Result<(), RemovalError> {
    remove_tree(&layout.volume_subpaths(uid))?;
    // What is half gone must not look ready.
    remove_tree(&layout.pod(uid).join("plugins"))?;
    let volumes = layout.volumes(uid);
    for plugin in names(&volumes)? {
        let folder = volumes.join(&plugin);
        if PLUGINS.contains(&plugin.as_str()) {
            remove_tree(&folder)?;
        } else if !names(&folder)?.is_empty() {
            return Err(RemovalError::Foreign(folder));
        }
    }
    remove_tree(&volumes)
}

/// Takes a pod's whole folder away.
pub(super) fn remove_pod(layout: &Layout, uid: &str) -> Result<(), RemovalError> {
    remove_volumes(layout, uid)?;
    remove_tree(&layout.pod(uid))
}

/// The pods on the disk that nobody knows. A pod is known before it has a folder, so the folders are looked at first.
pub(super) fn orphans(layout: &Layout, roster: &Roster) -> Result<Vec<String>, RemovalError> {
    let there = names(&layout.pods())?;
    Ok(there.into_iter().filter(|uid| !roster.knows(uid)).collect())
}

/// Unmounts and removes. What is mounted is never deleted from: if something still is, nothing is removed.
fn remove_tree(folder: &Path) -> Result<(), RemovalError> {
    let failed = |source| RemovalError::Io { path: folder.to_path_buf(), source };
    unmount_below(folder).map_err(failed)?;
    if let Some(place) = mounted_below(folder).map_err(failed)?.into_iter().next() {
        return Err(RemovalError::Mounted(place));
    }
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done.map_err(failed),
    }
}

/// What is in a folder; nothing, if it is not there.
fn names(folder: &Path) -> Result<Vec<String>, RemovalError> {
    let failed = |source| RemovalError::Io { path: folder.to_path_buf(), source };
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let names = entries.map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()));
    names.collect::<io::Result<_>>().map_err(failed)
}
