//! Reading files that untrusted programs can replace.
//!
//! A file is looked at before it is opened for reading: opening a pipe may wait for ever, opening a
//! device may do something. It is the same file then, as it is opened through its descriptor.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, fstat, open};

/// Opens a regular file that is no link itself; links on the way to it are followed.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    regular(&open(path, flags, Mode::empty())?)
}

/// Opens a file for reading that was found and may be of any kind: its descriptor may be one that
/// cannot read (`O_PATH`).
pub fn regular(found: &OwnedFd) -> io::Result<File> {
    if !FileType::from_raw_mode(fstat(found)?.st_mode).is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        ));
    }
    let path = format!("/proc/self/fd/{}", found.as_raw_fd());
    // Even a regular file may be waited for: somebody may hold a lease on it.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(File::from(open(path, flags, Mode::empty())?))
}

/// The last bytes of a file, so many at most.
pub fn tail(mut file: File, limit: u64) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(limit)))?;
    head(file, limit)
}

/// The next bytes of a file, so many at most.
pub fn head(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// All of a file.
///
/// # Errors
/// It is longer than this.
pub fn whole(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let bytes = head(file, limit.saturating_add(1))?;
    if bytes.len() as u64 > limit {
        let text = format!("longer than {limit} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}
