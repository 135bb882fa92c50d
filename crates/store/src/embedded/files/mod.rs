//! The file layer: all file operations of the engine. One flat directory of files that are appended
//! to, synced, renamed and removed. Implemented by real files and by a simulated disk, which loses
//! everything that was not synced.

mod real;
#[cfg(feature = "testing")]
mod simulated;

pub(crate) use real::PRIVATE;
pub use real::RealFiles;
#[cfg(feature = "testing")]
pub use simulated::{SimulatedDisk, SimulatedFiles};

use std::{io, sync::Arc};

/// A directory of files.
///
/// Created, renamed and removed files are durable only after [`Files::sync_directory`], written
/// data only after [`File::sync`].
pub trait Files: Send + Sync + 'static {
    /// The path of the directory, for messages.
    fn path(&self) -> String;

    fn list(&self) -> io::Result<Vec<String>>;

    /// Creates a new, empty file, replacing one of that name.
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>>;

    /// Opens an existing file for reading.
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>>;

    /// Replaces `to` atomically.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    fn remove(&self, name: &str) -> io::Result<()>;

    fn sync_directory(&self) -> io::Result<()>;

    /// Locks the directory until the lock is dropped. `None`: another process holds the lock.
    fn lock(&self) -> io::Result<Option<Box<dyn Lock>>>;

    /// Whether reads may block, so that they must not run on async worker threads.
    fn reads_may_block(&self) -> bool;
}

/// One file, written at its end only.
pub trait File: Send + Sync + 'static {
    /// Writes all of `bytes` at `offset`. After an error any part of them may have been written.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Fills `bytes` from `offset`; an error if the file is shorter.
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()>;

    /// Makes what was written durable. After an error the state of everything written since the
    /// last sync is unknown, and another sync would not tell.
    fn sync(&self) -> io::Result<()>;

    fn size(&self) -> io::Result<u64>;
}

/// A lock on the directory, held until dropped.
pub trait Lock: Send + Sync {}

/// Reads a whole file.
pub(crate) fn read_all(file: &dyn File) -> io::Result<Vec<u8>> {
    let mut buffer = Vec::new();
    let len = read_into(file, &mut buffer)?;
    buffer.truncate(len);
    Ok(buffer)
}

/// Reads a whole file into a buffer that grows as needed, and returns its size.
pub(crate) fn read_into(file: &dyn File, buffer: &mut Vec<u8>) -> io::Result<usize> {
    let size = usize::try_from(file.size()?).map_err(|_| io::ErrorKind::FileTooLarge)?;
    if buffer.len() < size {
        buffer.resize(size, 0);
    }
    file.read_at(0, &mut buffer[..size])?;
    Ok(size)
}
