//! Mount points that most containers need, as a layer below those of the image.
//!
//! A mount in a container needs a mount point. Where the image has none, one would be created in
//! the container's writable layer: up to a dozen files and folders for every container. Here they
//! are created once, and containers with the same mount points share them. Entries of the image
//! take precedence.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use coracle_files::remove_tree;

/// The usual mount points. There is a layer for every requested subset.
const USUAL: [(&str, Kind); 7] = [
    ("/dev", Kind::Folder),
    ("/proc", Kind::Folder),
    ("/sys", Kind::Folder),
    ("/etc/hostname", Kind::File),
    ("/etc/hosts", Kind::File),
    ("/etc/resolv.conf", Kind::File),
    (
        "/var/run/secrets/kubernetes.io/serviceaccount",
        Kind::Folder,
    ),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Folder,
    File,
}

/// The layer in `layers` with the usual ones of these mount points; none if there are none. It is
/// created in `staging` if missing.
pub(super) fn layer(
    layers: &Path,
    staging: &Path,
    places: &[String],
) -> io::Result<Option<PathBuf>> {
    let wanted = |place: &str| {
        places
            .iter()
            .any(|path| path.trim_end_matches('/') == place)
    };

    let chosen: Vec<usize> = (0..USUAL.len())
        .filter(|number| wanted(USUAL[*number].0))
        .collect();
    if chosen.is_empty() {
        return Ok(None);
    }

    let name: String = chosen.iter().map(ToString::to_string).collect();
    let layer = layers.join(name);
    if layer.exists() {
        return Ok(Some(layer));
    }

    make(staging, &chosen)?;
    fs::create_dir_all(layers)?;

    match fs::rename(staging, &layer) {
        // Created concurrently.
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => remove_tree(staging)?,
        renamed => renamed?,
    }

    Ok(Some(layer))
}

fn make(root: &Path, chosen: &[usize]) -> io::Result<()> {
    let folder = |path: &Path| DirBuilder::new().recursive(true).mode(0o755).create(path);
    folder(root)?;

    for (path, kind) in chosen.iter().map(|number| USUAL[*number]) {
        let path = root.join(path.trim_start_matches('/'));
        match kind {
            Kind::Folder => folder(&path)?,
            Kind::File => {
                path.parent().map_or(Ok(()), folder)?;
                File::create(&path)?.set_permissions(fs::Permissions::from_mode(0o644))?;
            }
        }
    }

    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_made_once_for_every_choice_of_usual_places() {
        let folder = tempfile::tempdir().unwrap();
        let (layers, staging) = (folder.path().join("layers"), folder.path().join("staging"));
        let layer = |places: &[&str]| {
            let places: Vec<String> = places.iter().map(|place| (*place).to_owned()).collect();
            layer(&layers, &staging, &places).unwrap()
        };
        assert_eq!(layer(&[]), None);

        assert_eq!(layer(&["/data", "/etc"]), None);

        let both = layer(&["/dev", "/data", "/etc/hosts"]).unwrap();
        assert!(both.join("dev").is_dir() && both.join("etc/hosts").is_file());
        assert!(!both.join("data").exists() && !both.join("etc/hostname").exists());

        fs::write(both.join("mark"), "").unwrap();
        assert_eq!(layer(&["/etc/hosts", "/dev/"]).unwrap(), both);
        assert!(both.join("mark").exists(), "it is not made again");
        assert_ne!(layer(&["/dev"]).unwrap(), both);
        assert!(!staging.exists());
    }
}
