//! The file layer: all the engine ever does to a disk. One flat directory of files that only grow,
//! are synced, renamed and removed. Real files are one implementation; the simulated disk, which
//! loses everything that was not synced, is the other.

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
/// What was created, renamed or removed is durable only after [`Files::sync_directory`], what was
/// written only after [`File::sync`].
pub trait Files: Send + Sync + 'static {
    /// Where the directory is, for messages.
    fn place(&self) -> String;

    fn list(&self) -> io::Result<Vec<String>>;

    /// Makes a new, empty file; one of that name is replaced.
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>>;

    /// Opens an existing file for reading.
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>>;

    /// Replaces `to`, at once or not at all.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    fn remove(&self, name: &str) -> io::Result<()>;

    fn sync_directory(&self) -> io::Result<()>;

    /// Claims the directory until the lock is dropped. `None`: somebody else holds it.
    fn lock(&self) -> io::Result<Option<Box<dyn Lock>>>;

    /// Whether a read may wait for a disk, so that it must stay off the threads that serve others.
    fn reads_may_block(&self) -> bool;
}

/// One file, written at its end only.
pub trait File: Send + Sync + 'static {
    /// Writes all of `bytes` at `offset`. After an error any part of them may be there.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Fills `bytes` from `offset`; an error where the file is shorter.
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()>;

    /// Makes what was written durable. After an error nothing is known about what was written since
    /// the last sync, and syncing again would not tell.
    fn sync(&self) -> io::Result<()>;

    fn size(&self) -> io::Result<u64>;
}

/// A claim on the directory, held until dropped.
pub trait Lock: Send + Sync {}

/// The whole of a file.
pub(crate) fn read_all(file: &dyn File) -> io::Result<Vec<u8>> {
    let mut buffer = Vec::new();
    let len = read_into(file, &mut buffer)?;
    buffer.truncate(len);
    Ok(buffer)
}

/// The whole of a file, into a buffer that grows as needed; how much it was.
pub(crate) fn read_into(file: &dyn File, buffer: &mut Vec<u8>) -> io::Result<usize> {
    let size = usize::try_from(file.size()?).map_err(|_| io::ErrorKind::FileTooLarge)?;
    if buffer.len() < size {
        buffer.resize(size, 0);
    }
    file.read_at(0, &mut buffer[..size])?;
    Ok(size)
}
