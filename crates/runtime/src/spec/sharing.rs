//! Checks mount propagation: a volume can propagate mounts only if the host mount it is on is
//! shared (or a slave).

use std::fs;
use std::path::{Path, PathBuf};

use coracle_supervisor::protocol::Propagation;

use crate::error::Error;

/// Refuses a volume that cannot be propagated as requested. The error texts are those of other
/// runtimes.
pub(super) fn check(path: &str, wanted: &Propagation) -> Result<(), Error> {
    let (shared, kinds): (&[&str], _) = match wanted {
        Propagation::Private {} => return Ok(()),
        Propagation::Slave {} => (&["shared:", "master:"], "shared or slave"),
        Propagation::Shared {} => (&["shared:"], "shared"),
    };

    let place = Path::new(path);
    let real = fs::canonicalize(place).map_err(Error::io("find", place))?;

    // Of this thread, which may be in another mount namespace than the process.
    let mountinfo = Path::new("/proc/thread-self/mountinfo");
    let mounts = fs::read_to_string(mountinfo).map_err(Error::io("read", mountinfo))?;
    let (mount, tags) = mount_of(&mounts, &real);
    if tags
        .iter()
        .any(|tag| shared.iter().any(|kind| tag.starts_with(kind)))
    {
        return Ok(());
    }

    let mount = mount.display().to_string();
    Err(Error::Invalid(format!(
        "path {path:?} is mounted on {mount:?} but it is not a {kinds} mount"
    )))
}

/// The mount point of the mount that a path is on, and its tags.
fn mount_of<'a>(mountinfo: &'a str, path: &Path) -> (PathBuf, Vec<&'a str>) {
    let mounts = mountinfo.lines().filter_map(|line| {
        let (front, _) = line.split_once(" - ")?;
        let mut fields = front.split(' ').skip(4);
        Some((
            unescaped(fields.next()?),
            fields.skip(1).collect::<Vec<_>>(),
        ))
    });

    // The last mount at a path covers earlier ones.
    let around = mounts.filter(|(place, _)| path.starts_with(place));
    around
        .max_by_key(|(place, _)| place.components().count())
        .unwrap_or_default()
}

/// The kernel writes blanks and backslashes as three octal digits.
fn unescaped(place: &str) -> PathBuf {
    let known = [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ];
    PathBuf::from(known.iter().fold(place.to_owned(), |text, (code, plain)| {
        text.replace(code, plain)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
        20 1 8:1 / / rw,relatime - ext4 /dev/sda rw\n\
        21 20 8:2 / /var rw,relatime shared:1 - ext4 /dev/sdb rw\n\
        22 21 8:3 / /var/lib rw,relatime master:1 - ext4 /dev/sdc rw\n\
        23 20 0:5 / /a\\040b rw shared:3 master:1 - tmpfs x rw\n\
        24 21 8:3 / /var/lib rw,relatime shared:7 - ext4 /dev/sdd rw\n";

    #[test]
    fn a_path_is_on_the_innermost_mount_around_it_and_the_last_one_there() {
        let check = |path: &str, place: &str, tags: &[&str]| {
            assert_eq!(
                mount_of(MOUNTS, Path::new(path)),
                (PathBuf::from(place), tags.to_vec()),
                "{path}"
            );
        };

        check("/", "/", &[]);
        check("/variable", "/", &[]);
        check("/var/log", "/var", &["shared:1"]);
        check("/var/lib/x", "/var/lib", &["shared:7"]);
        check("/a b/c", "/a b", &["shared:3", "master:1"]);
    }
}
