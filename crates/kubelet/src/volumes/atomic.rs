//! The atomic writer: replaces all files of a volume at once.
//!
//! ```text
//! <volume>/..2026_11_16_10_00_00.1234567890/key    the files
//! <volume>/..data -> ..2026_11_16_10_00_00.1234567890
//! <volume>/key -> ..data/key                       what a container opens
//! ```
//! New contents are written to a new directory; then the link `..data` is replaced by a rename, so
//! that readers see either the old or the new files, and watchers of `..data` are notified. The
//! layout is upstream's: programs in containers rely on it. An interrupted write leaves a directory
//! or link that the next write removes.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use coracle_api::go_text::Quoted;
use coracle_api::time::{Time, Timestamp};
use coracle_files::{WalkEntry, open_folder, read, remove_tree, walk};
use rustix::fs::{AtFlags, CWD, Uid, chownat};

use super::contents::{Contents, FileContent};

const DATA: &str = "..data";
const NEW_DATA: &str = "..data_tmp";
const LONGEST_NAME: usize = 255;
const LONGEST_PATH: usize = 4096;

/// Why files were not written. The texts about paths are upstream's.
#[derive(Debug, thiserror::Error)]
pub(super) enum AtomicError {
    #[error("invalid path: must not be empty: {}", Quoted(.0))]
    Empty(String),
    #[error("invalid path: must be relative path: {0}")]
    Absolute(String),
    #[error("invalid path: must be less than or equal to {LONGEST_PATH} characters")]
    LongPath,
    #[error("invalid path: filenames must be less than or equal to {LONGEST_NAME} characters")]
    LongName,
    #[error("invalid path: must not contain '..': {0}")]
    Backsteps(String),
    #[error("invalid path: must not start with '..': {0}")]
    Reserved(String),
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
}

/// Whether files have been written to a directory before.
pub(super) fn is_written(dir: &Path) -> bool {
    fs::symlink_metadata(dir.join(DATA)).is_ok()
}

/// Replaces the files of a directory by `contents`. Does nothing if they are equal. `give` sets the
/// ownership before the new files become visible; `salt` makes the name of the new directory
/// unique.
pub(super) fn write(
    dir: &Path,
    contents: &Contents,
    now: Timestamp,
    salt: u64,
    give: impl FnOnce(&Path) -> io::Result<()>,
) -> Result<(), AtomicError> {
    let contents = checked(contents)?;
    let current = match fs::read_link(dir.join(DATA)) {
        Ok(current) => Some(dir.join(current)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(at(&dir.join(DATA))(error)),
    };

    let same = match &current {
        Some(current) => holds(current, &contents).map_err(at(current))?,
        None => false,
    };

    if !same {
        clear_left_over(dir, current.as_deref()).map_err(at(dir))?;
        let name = format!("..{}.{salt}", stamp(now));
        let fresh = dir.join(&name);
        let made = publish(dir, &name, &contents, give);
        if let Err(error) = made {
            remove_tree(&fresh).map_err(at(&fresh))?;
            return Err(at(&fresh)(error));
        }
    }

    show(dir, &contents).map_err(at(dir))?;

    if let Some(old) = current {
        hide_others(dir, &contents).map_err(at(dir))?;
        if !same {
            remove_tree(&old).map_err(at(&old))?;
        }
    }

    Ok(())
}

fn publish(
    dir: &Path,
    name: &str,
    contents: &Contents,
    give: impl FnOnce(&Path) -> io::Result<()>,
) -> io::Result<()> {
    let fresh = dir.join(name);
    DirBuilder::new().mode(0o755).create(&fresh)?;
    fs::set_permissions(&fresh, Permissions::from_mode(0o755))?;
    for (path, file) in contents {
        write_file(&fresh, path, file)?;
    }
    // The whole volume, as its directory and links may be new too.
    give(dir)?;
    symlink(name, dir.join(NEW_DATA))?;
    fs::rename(dir.join(NEW_DATA), dir.join(DATA))
}

fn write_file(fresh: &Path, path: &str, file: &FileContent) -> io::Result<()> {
    let full = fresh.join(path);
    if let Some(parent) = full.parent().filter(|parent| *parent != fresh) {
        fs::create_dir_all(parent)?;
    }

    let mut opened = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&full)?;
    opened.write_all(&file.data)?;

    opened.set_permissions(Permissions::from_mode(file.mode))?;

    match file.owner {
        Some(owner) => Ok(chownat(
            CWD,
            &full,
            Some(Uid::from_raw(owner)),
            None,
            AtFlags::SYMLINK_NOFOLLOW,
        )?),
        None => Ok(()),
    }
}

/// The first component of a path.
fn first(path: &str) -> &str {
    path.split('/').next().unwrap_or(path)
}

/// Creates the links that containers open: one per first path component.
fn show(dir: &Path, contents: &Contents) -> io::Result<()> {
    let mut wanted = BTreeSet::new();
    for (path, file) in contents {
        let first = first(path);
        let link = dir.join(first);
        if wanted.insert(first) && fs::read_link(&link).is_err_and(|error| is_missing(&error)) {
            symlink(Path::new(DATA).join(first), &link)?;

            if let Some(owner) = file.owner {
                chownat(
                    CWD,
                    &link,
                    Some(Uid::from_raw(owner)),
                    None,
                    AtFlags::SYMLINK_NOFOLLOW,
                )?;
            }
        }
    }

    Ok(())
}

/// Removes links to files that no longer exist.
fn hide_others(dir: &Path, contents: &Contents) -> io::Result<()> {
    let wanted: BTreeSet<&str> = contents.keys().map(|path| first(path)).collect();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let ours =
            fs::read_link(entry.path()).is_ok_and(|target| target == Path::new(DATA).join(&name));
        if ours && !wanted.contains(name.as_str()) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Whether a directory has exactly these files.
fn holds(current: &Path, contents: &Contents) -> io::Result<bool> {
    let there = match open_folder(current).and_then(count_files) {
        Err(error) if is_missing(&error) => return Ok(false),
        there => there?,
    };

    if there != contents.len() {
        return Ok(false);
    }

    for (path, file) in contents {
        let limit = u64::try_from(file.data.len()).unwrap_or(u64::MAX);
        let written =
            read::open_regular(&current.join(path)).and_then(|file| read::whole(file, limit));
        match written {
            Ok(written) if written == file.data => {}
            // Different contents.
            Ok(_) => return Ok(false),
            Err(error) if is_missing(&error) || error.kind() == io::ErrorKind::FileTooLarge => {
                return Ok(false);
            }
            Err(error) => return Err(error),
        }
    }

    Ok(true)
}

/// The number of non-directories below a directory.
fn count_files(folder: OwnedFd) -> io::Result<usize> {
    let mut count = 0;
    walk(folder, &mut |found: &WalkEntry<'_>| {
        count += usize::from(!found.kind().is_dir());
        Ok(())
    })?;
    Ok(count)
}

/// Removes the remains of an interrupted write.
fn clear_left_over(dir: &Path, current: Option<&Path>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();

        if name == NEW_DATA {
            fs::remove_file(&path)?;
        } else if name.starts_with("..") && name != DATA && Some(path.as_path()) != current {
            remove_tree(&path)?;
        }
    }

    Ok(())
}

/// The contents with normalized paths, if all paths are valid.
fn checked(contents: &Contents) -> Result<Contents, AtomicError> {
    let mut plain = Contents::new();
    for (path, file) in contents {
        check_path(path)?;
        let parts: Vec<&str> = path
            .split('/')
            .filter(|part| !matches!(*part, "" | "."))
            .collect();
        plain.insert(parts.join("/"), file.clone());
    }
    Ok(plain)
}

fn check_path(path: &str) -> Result<(), AtomicError> {
    if path.is_empty() {
        return Err(AtomicError::Empty(path.to_owned()));
    }
    if path.starts_with('/') {
        return Err(AtomicError::Absolute(path.to_owned()));
    }
    if path.len() > LONGEST_PATH {
        return Err(AtomicError::LongPath);
    }

    if path.split('/').any(|part| part == "..") {
        return Err(AtomicError::Backsteps(path.to_owned()));
    }
    if path.split('/').any(|part| part.len() > LONGEST_NAME) {
        return Err(AtomicError::LongName);
    }
    if path.starts_with("..") {
        return Err(AtomicError::Reserved(path.to_owned()));
    }

    Ok(())
}

/// `2026_11_16_10_00_00`.
fn stamp(now: Timestamp) -> String {
    let text = Time(now).text();
    text.trim_end_matches('Z').replace(['-', ':', 'T'], "_")
}

fn is_missing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

fn at(path: &Path) -> impl Fn(io::Error) -> AtomicError {
    move |source| AtomicError::Io {
        path: path.to_path_buf(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    const NOON: Timestamp = Timestamp::from_unix(1_772_366_400, 0);

    fn files(files: &[(&str, &str)]) -> Contents {
        let file = |data: &str| FileContent {
            data: data.into(),
            mode: 0o640,
            owner: None,
        };
        files
            .iter()
            .map(|(path, data)| ((*path).to_owned(), file(data)))
            .collect()
    }

    fn put(dir: &Path, salt: u64, contents: &[(&str, &str)]) {
        write(dir, &files(contents), NOON, salt, |_| Ok(())).unwrap();
    }

    /// The names in a directory, links with their targets.
    fn listed(dir: &Path) -> Vec<String> {
        let shown = |entry: fs::DirEntry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            fs::read_link(entry.path()).map_or(name.clone(), |target| {
                format!("{name} -> {}", target.display())
            })
        };

        let mut names: Vec<String> = fs::read_dir(dir)
            .unwrap()
            .map(|entry| shown(entry.unwrap()))
            .collect();
        names.sort();

        names
    }

    #[test]
    fn files_have_upstreams_layout() {
        let folder = tempfile::tempdir().unwrap();
        put(
            folder.path(),
            7,
            &[("a", "1"), ("deep/b", "2"), ("deep/er/c", "3")],
        );

        let stamped = "..2026_03_01_12_00_00.7";
        assert_eq!(
            listed(folder.path()),
            [
                stamped.to_owned(),
                format!("..data -> {stamped}"),
                "a -> ..data/a".to_owned(),
                "deep -> ..data/deep".to_owned()
            ]
        );

        assert_eq!(fs::read(folder.path().join("deep/er/c")).unwrap(), b"3");

        let mode = |path: &str| fs::metadata(folder.path().join(path)).unwrap().mode() & 0o777;
        assert_eq!((mode("a"), mode(stamped)), (0o640, 0o755));
    }

    #[test]
    fn the_same_contents_change_nothing() {
        let folder = tempfile::tempdir().unwrap();
        put(folder.path(), 1, &[("a", "1")]);
        let before = listed(folder.path());
        put(folder.path(), 2, &[("a", "1")]);
        assert_eq!(listed(folder.path()), before);

        fs::remove_file(folder.path().join("a")).unwrap();
        put(folder.path(), 3, &[("a", "1")]);
        assert_eq!(
            listed(folder.path()),
            before,
            "a link that was lost comes back"
        );
    }

    #[test]
    fn new_contents_replace_old_ones() {
        let folder = tempfile::tempdir().unwrap();
        put(folder.path(), 1, &[("a", "1"), ("b", "1")]);
        put(folder.path(), 2, &[("a", "2"), ("c/d", "2")]);

        let stamped = "..2026_03_01_12_00_00.2";
        assert_eq!(
            listed(folder.path()),
            [
                stamped.to_owned(),
                format!("..data -> {stamped}"),
                "a -> ..data/a".to_owned(),
                "c -> ..data/c".to_owned()
            ]
        );

        put(folder.path(), 3, &[]);
        let stamped = "..2026_03_01_12_00_00.3";
        assert_eq!(
            listed(folder.path()),
            [stamped.to_owned(), format!("..data -> {stamped}")]
        );
    }

    #[test]
    fn remains_of_an_interrupted_write_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        put(folder.path(), 1, &[("a", "1")]);
        fs::create_dir_all(folder.path().join("..2026_02_28_00_00_00.9/x")).unwrap();
        symlink("nowhere", folder.path().join(NEW_DATA)).unwrap();
        fs::create_dir(folder.path().join("mounted-below")).unwrap();
        put(folder.path(), 2, &[("a", "2")]);

        let stamped = "..2026_03_01_12_00_00.2";
        let expected = [
            stamped.to_owned(),
            format!("..data -> {stamped}"),
            "a -> ..data/a".to_owned(),
            "mounted-below".to_owned(),
        ];
        assert_eq!(listed(folder.path()), expected);
    }

    #[test]
    fn files_whose_ownership_cannot_be_set_stay_invisible() {
        let folder = tempfile::tempdir().unwrap();
        let refused = write(folder.path(), &files(&[("a", "1")]), NOON, 1, |_| {
            Err(io::Error::other("no"))
        });
        refused.unwrap_err();
        assert!(listed(folder.path()).is_empty());
        assert!(!is_written(folder.path()));
    }

    #[test]
    fn invalid_paths_are_refused_with_upstreams_message() {
        let check = |path: &str, expected: &str| {
            let folder = tempfile::tempdir().unwrap();
            let refused =
                write(folder.path(), &files(&[(path, "")]), NOON, 1, |_| Ok(())).unwrap_err();
            assert_eq!(refused.to_string(), expected);
        };

        check("", "invalid path: must not be empty: \"\"");
        check("/etc/x", "invalid path: must be relative path: /etc/x");
        check("a/../b", "invalid path: must not contain '..': a/../b");
        check("..a/b", "invalid path: must not start with '..': ..a/b");
        check(
            &"x".repeat(256),
            "invalid path: filenames must be less than or equal to 255 characters",
        );

        check(
            &"x/".repeat(2049),
            "invalid path: must be less than or equal to 4096 characters",
        );
    }
}
