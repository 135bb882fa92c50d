//! The kernel's mount table.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};
use rustix::mount::{UnmountFlags, unmount};

/// Whether a path is a mount point. A missing path is none.
pub(super) fn is_mount_point(path: &Path) -> io::Result<bool> {
    match statx(
        CWD,
        path,
        AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT,
        StatxFlags::TYPE,
    ) {
        Ok(found) => Ok(found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT)),
        Err(rustix::io::Errno::NOENT) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The mount points at or below a directory, the last mounted first, which is the order to unmount
/// them. A path appears once per mount on it. Reads the mount table of the whole machine, which may
/// be long.
pub(super) fn mounted_below(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let folder = match folder.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        folder => folder?,
    };
    Ok(below(&fs::read("/proc/self/mountinfo")?, &folder))
}

/// Unmounts everything below a directory.
#[cfg(test)]
pub(super) fn unmount_below(folder: &Path) -> io::Result<()> {
    unmount_all(&mounted_below(folder)?)
}

/// Unmounts all of these, in this order.
pub(super) fn unmount_all(places: &[PathBuf]) -> io::Result<()> {
    for place in places {
        match unmount(place, UnmountFlags::NOFOLLOW) {
            // Already unmounted, e.g. with its peer.
            Ok(()) | Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOENT) => {}
            Err(error) => {
                let reason = io::Error::from(error);
                return Err(io::Error::new(
                    reason.kind(),
                    format!("unmount {}: {reason}", place.display()),
                ));
            }
        }
    }

    Ok(())
}

fn below(table: &[u8], folder: &Path) -> Vec<PathBuf> {
    let places = table
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.split(|byte| *byte == b' ').nth(4));
    let places = places
        .map(unescaped)
        .filter(|place| place.starts_with(folder));
    let mut places: Vec<PathBuf> = places.collect();
    places.reverse();
    places
}

/// Decodes the octal escapes of spaces and the like.
fn unescaped(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let octal = after
            .get(..3)
            .filter(|_| *first == b'\\')
            .and_then(|digits| {
                let text = std::str::from_utf8(digits).ok()?;
                u8::from_str_radix(text, 8).ok()
            });
        bytes.push(octal.unwrap_or(*first));

        rest = if octal.is_some() { &after[3..] } else { after };
    }

    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[u8] = b"22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/root rw\n\
        30 22 0:40 / /k/pods/u/volumes/s rw shared:2 - tmpfs tmpfs rw,size=1k\n\
        31 22 254:1 /x /k/pods/u/sub\\040path rw - ext4 /dev/root rw\n\
        32 22 0:41 / /k/pods/u2/volumes/s rw - tmpfs tmpfs rw\n\
        33 30 0:42 / /k/pods/u/volumes/s/in rw - tmpfs tmpfs rw\n";

    #[test]
    fn mount_points_are_in_unmount_order() {
        let found = below(TABLE, Path::new("/k/pods/u"));
        let expected = [
            "/k/pods/u/volumes/s/in",
            "/k/pods/u/sub path",
            "/k/pods/u/volumes/s",
        ];
        assert_eq!(found, expected.map(PathBuf::from));
        assert!(below(TABLE, Path::new("/k/pod")).is_empty());
    }

    #[test]
    fn only_the_root_of_a_mount_is_a_mount_point() {
        assert!(is_mount_point(Path::new("/proc")).unwrap());
        assert!(!is_mount_point(Path::new("/proc/self/")).unwrap());
        assert!(!is_mount_point(Path::new("/no/such/place")).unwrap());
    }
}
