//! Files that are there whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Writes a file under another name, syncs it, and gives it its name. It survives a power cut when this returns.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let unfinished = path.with_extension("new");
    let mut file = File::create(&unfinished)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&unfinished, path)?;
    sync_folder(folder)
}

/// Writes a file under another name and gives it its name. It survives whatever happens to this process, and is there
/// whole, or broken, or not at all after a power cut.
pub(super) fn write_for_now(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let unfinished = path.with_extension("new");
    fs::write(&unfinished, bytes)?;
    fs::rename(&unfinished, path)
}

pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Takes a folder for this process alone, as long as the file is open.
pub(super) fn lock(folder: &Path) -> io::Result<File> {
    fs::create_dir_all(folder)?;
    let file = File::create(folder.join("lock"))?;
    rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).map_err(|errno| {
        if errno == rustix::io::Errno::WOULDBLOCK {
            io::Error::new(io::ErrorKind::WouldBlock, "another process works with these images")
        } else {
            errno.into()
        }
    })?;
    Ok(file)
}

/// Deletes a file. One that is gone is no error.
pub(super) fn delete(path: &Path) -> io::Result<()> {
    unless_absent(fs::remove_file(path)).map(drop)
}

/// Deletes a folder with all that is in it. One that is gone is no error.
pub(super) fn delete_folder(path: &Path) -> io::Result<()> {
    unless_absent(fs::remove_dir_all(path)).map(drop)
}

/// None for what is not there.
pub(super) fn unless_absent<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The names of what is in a folder.
pub(super) fn names(folder: &Path) -> io::Result<Vec<String>> {
    fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}
