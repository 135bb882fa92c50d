//! `hostPath` volumes: nothing is created but what the type says, and nothing is ever removed.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};

use async_trait::async_trait;
use k8s_openapi::api::core::v1::Volume;

use super::plugin::{Context, SetUp, SetUpError, VolumePlugin};

pub(super) struct HostPathPlugin;

#[async_trait]
impl VolumePlugin for HostPathPlugin {
    fn can_support(&self, volume: &Volume) -> bool {
        volume.host_path.is_some()
    }

    fn directory(&self) -> Option<&'static str> {
        None
    }

    fn host_path(&self, volume: &Volume) -> Option<PathBuf> {
        Some(PathBuf::from(&volume.host_path.as_ref()?.path))
    }

    fn is_writable(&self) -> bool {
        true
    }

    async fn prepare(&self, volume: &Volume, _: &Context<'_>) -> Result<SetUp, SetUpError> {
        let source = volume.host_path.clone().unwrap_or_default();
        let kind = source.type_.unwrap_or_default();
        Ok(SetUp::new(move |_| {
            Ok(check(Path::new(&source.path), &kind)?)
        }))
    }
}

/// Why a path cannot be used. The texts are upstream's.
#[derive(Debug, thiserror::Error)]
pub(super) enum HostPathError {
    #[error("invalid HostPath `{0}`: must not contain '..'")]
    Backsteps(String),
    #[error("hostPath type check failed: {path} is not a {what}")]
    NotA { path: String, what: &'static str },
    #[error("{0} is an invalid volume type")]
    Type(String),
    #[error("{0}")]
    Make(#[from] io::Error),
}

/// Checks the type of a path, and creates the path if the type says so. No type: no check.
pub(super) fn check(path: &Path, kind: &str) -> Result<(), HostPathError> {
    let shown = || path.to_string_lossy().into_owned();
    if path.components().any(|part| part == Component::ParentDir) {
        return Err(HostPathError::Backsteps(shown()));
    }

    let found = fs::metadata(path).map(|metadata| metadata.file_type()).ok();
    let (is, what) = match (kind, found) {
        ("", _) => return Ok(()),
        ("DirectoryOrCreate", None) => return Ok(make_directory(path)?),
        ("FileOrCreate", None) => return Ok(make_file(path)?),
        ("DirectoryOrCreate" | "Directory", found) => {
            (found.is_some_and(|found| found.is_dir()), "directory")
        }
        ("FileOrCreate" | "File", found) => (found.is_some_and(|found| found.is_file()), "file"),
        ("Socket", found) => (found.is_some_and(|found| found.is_socket()), "socket file"),
        ("CharDevice", found) => (
            found.is_some_and(|found| found.is_char_device()),
            "character device",
        ),
        ("BlockDevice", found) => (
            found.is_some_and(|found| found.is_block_device()),
            "block device",
        ),
        (other, _) => return Err(HostPathError::Type(other.to_owned())),
    };

    if is {
        Ok(())
    } else {
        Err(HostPathError::NotA {
            path: shown(),
            what,
        })
    }
}

fn make_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o755).create(path)
}

/// The parent directory must exist.
fn make_file(path: &Path) -> io::Result<()> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o644)
        .open(path)
        .map(drop)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn the_type_of_a_path_is_checked() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("dir")).unwrap();
        fs::write(at("file"), "").unwrap();
        std::os::unix::fs::symlink("dir", at("link")).unwrap();
        let _socket = UnixListener::bind(at("socket")).unwrap();

        let check = |path: &Path, kind: &str, expected: Result<(), &str>| {
            let found = check(path, kind).map_err(|error| error.to_string());
            let place = format!("{}/", folder.path().display());
            assert_eq!(
                found.map_err(|text| text.replace(&place, "")),
                expected.map_err(str::to_owned),
                "{path:?} {kind}"
            );
        };

        check(&at("gone"), "", Ok(()));
        check(&at("dir"), "Directory", Ok(()));
        check(&at("link"), "Directory", Ok(()));
        check(&at("file"), "File", Ok(()));

        check(&at("socket"), "Socket", Ok(()));
        check(Path::new("/dev/null"), "CharDevice", Ok(()));
        check(
            &at("gone"),
            "Directory",
            Err("hostPath type check failed: gone is not a directory"),
        );

        check(
            &at("file"),
            "DirectoryOrCreate",
            Err("hostPath type check failed: file is not a directory"),
        );

        check(
            &at("dir"),
            "File",
            Err("hostPath type check failed: dir is not a file"),
        );

        check(
            &at("dir"),
            "FileOrCreate",
            Err("hostPath type check failed: dir is not a file"),
        );

        check(
            &at("file"),
            "Socket",
            Err("hostPath type check failed: file is not a socket file"),
        );

        check(
            &at("file"),
            "CharDevice",
            Err("hostPath type check failed: file is not a character device"),
        );

        check(
            Path::new("/dev/null"),
            "BlockDevice",
            Err("hostPath type check failed: /dev/null is not a block device"),
        );

        check(&at("file"), "Pipe", Err("Pipe is an invalid volume type"));
        check(
            Path::new("/a/../b"),
            "",
            Err("invalid HostPath `/a/../b`: must not contain '..'"),
        );
    }

    #[test]
    fn a_missing_path_is_created_if_the_type_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a/b");
        check(&deep, "DirectoryOrCreate").unwrap();
        assert!(deep.is_dir());
        let file = deep.join("f");
        check(&file, "FileOrCreate").unwrap();
        assert!(file.is_file());
        fs::write(&file, "kept").unwrap();
        check(&file, "FileOrCreate").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"kept");
        check(&folder.path().join("no/such/f"), "FileOrCreate").unwrap_err();
    }
}
