//! Mount points of nested volumes: volumes of files are read-only in containers, so mount points
//! below them are created beforehand.

use std::io;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{Pod, VolumeMount};

use crate::pod::PodView as _;

/// Why mount points cannot be created.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NestedError {
    #[error("invalid container mount point {0}")]
    Outside(String),
    #[error("unable to create nested volume mountpoints: {0}")]
    Make(String),
}

/// The topmost paths below a volume at which containers mount other volumes.
pub(super) fn mount_points(pod: &Pod, volume: &str) -> Result<Vec<PathBuf>, NestedError> {
    let mut found = Vec::new();
    for (_, container) in pod.lasting_containers() {
        of_container(
            container.volume_mounts.as_deref().unwrap_or_default(),
            volume,
            &mut found,
        )?;
    }

    for container in pod.ephemeral_containers() {
        of_container(
            container.volume_mounts.as_deref().unwrap_or_default(),
            volume,
            &mut found,
        )?;
    }

    Ok(found)
}

fn of_container(
    mounts: &[VolumeMount],
    volume: &str,
    found: &mut Vec<PathBuf>,
) -> Result<(), NestedError> {
    let mut all: Vec<PathBuf> = mounts
        .iter()
        .map(|mount| cleaned(&mount.mount_path))
        .collect();
    all.sort();

    for mount in mounts.iter().filter(|mount| mount.name == volume) {
        let own = cleaned(&mount.mount_path);
        if own.starts_with("..") {
            return Err(NestedError::Outside(own.to_string_lossy().into_owned()));
        }

        let mut before: Vec<&PathBuf> = Vec::new();
        for other in all.iter().filter(|other| **other != own) {
            let Ok(below) = other.strip_prefix(&own) else {
                continue;
            };
            if !before.iter().any(|before| other.starts_with(before)) {
                before.push(other);
                found.push(below.to_path_buf());
            }
        }
    }

    Ok(())
}

pub(super) fn make(dir: &Path, places: &[PathBuf]) -> Result<(), NestedError> {
    let make = |place: &PathBuf| -> io::Result<()> { std::fs::create_dir_all(dir.join(place)) };
    places
        .iter()
        .try_for_each(make)
        .map_err(|error| NestedError::Make(error.to_string()))
}

/// The path without empty components, `.` and resolvable `..`.
fn cleaned(path: &str) -> PathBuf {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            ".." if path.starts_with('/') => {}
            _ => parts.push(part),
        }
    }
    let root = if path.starts_with('/') { "/" } else { "" };
    Path::new(root).join(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(mounts: &[(&str, &str)], expected: Result<&[&str], &str>) {
        let mounts: Vec<VolumeMount> = mounts
            .iter()
            .map(|(name, path)| VolumeMount {
                name: (*name).to_owned(),
                mount_path: (*path).to_owned(),
                ..VolumeMount::default()
            })
            .collect();

        let mut found = Vec::new();
        let found = of_container(&mounts, "v", &mut found)
            .map(|()| found)
            .map_err(|error| error.to_string());
        let expected = expected.map(|paths| paths.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(found, expected.map_err(str::to_owned));
    }

    #[test]
    fn the_topmost_nested_mount_points_are_found() {
        check(&[("v", "/dir")], Ok(&[]));
        check(
            &[
                ("v", "/dir"),
                ("w", "/dir/a"),
                ("x", "/dir/a/b"),
                ("y", "/dir2"),
            ],
            Ok(&["a"]),
        );

        check(&[("v", "/dir/"), ("w", "/dir//a/../c")], Ok(&["c"]));
        check(
            &[("v", "/dir"), ("v", "/dir/in/itself")],
            Ok(&["in/itself"]),
        );

        check(
            &[
                ("v", "/dir"),
                ("w", "/dir/n"),
                ("x", "/dir/n-v"),
                ("y", "/dir/n/d"),
            ],
            Ok(&["n", "n-v"]),
        );
    }

    #[test]
    fn a_relative_mount_path_is_refused() {
        check(
            &[("v", "../dir"), ("w", "/x")],
            Err("invalid container mount point ../dir"),
        );
    }
}
