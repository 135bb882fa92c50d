//! Atomic file writes, and the lock of the store.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::Path;
use std::thread;
use std::time::Duration;

use coracle_files::private;

/// Writes a file atomically and syncs it: it survives a power failure. An identical file is not
/// rewritten: built-in images are added at every start, also on a full disk.
pub(super) fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::read(path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let unfinished = path.with_extension("new");
    let mut file = private::create(&unfinished)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&unfinished, path)?;
    sync_folder(folder)
}

/// Writes a file without sync. It survives a crash of this process, but not a power failure.
pub(super) fn write_unsynced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    private::write(path, bytes)
}

pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Retries of a held lock.
const TRIES: u32 = 200;
const PAUSE: Duration = Duration::from_millis(10);

/// Locks a folder for this process, until the file is closed. With `wait`, retries for two seconds:
/// a child that the last holder was starting inherits the lock until its exec.
pub(super) fn lock(folder: &Path, wait: bool) -> io::Result<File> {
    // Layers contain setuid programs and device nodes: only root may enter.
    private::folder(folder)?;
    let file = private::create(&folder.join("lock"))?;

    let mut tries = if wait { TRIES } else { 1 };
    loop {
        tries -= 1;

        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if tries > 0 => thread::sleep(PAUSE),
            Err(TryLockError::WouldBlock) => {
                let taken = "another process uses this image store";
                return Err(io::Error::new(io::ErrorKind::WouldBlock, taken));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Deletes a file. Idempotent.
pub(super) fn delete(path: &Path) -> io::Result<()> {
    unless_absent(fs::remove_file(path)).map(drop)
}

/// Maps `NotFound` to `None`.
pub(super) fn unless_absent<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The names of what is in a folder.
pub(super) fn names(folder: &Path) -> io::Result<Vec<String>> {
    fs::read_dir(folder)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect()
}
