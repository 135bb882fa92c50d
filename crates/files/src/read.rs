//! Reads files that untrusted programs can replace.
//!
//! The type of a file is checked before it is opened for reading: opening a pipe may block forever,
//! opening a device may have side effects. It is then opened through its descriptor, so that it is
//! the same file.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, fstat, open};

/// Opens a regular file that is not a symlink itself; symlinks in its parent path are followed.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    regular(&open(path, flags, Mode::empty())?)
}

/// Opens a file of any type for reading if it is regular; the descriptor may be `O_PATH`.
pub fn regular(found: &OwnedFd) -> io::Result<File> {
    if !FileType::from_raw_mode(fstat(found)?.st_mode).is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        ));
    }
    let path = format!("/proc/self/fd/{}", found.as_raw_fd());
    // Opening even a regular file may block, if another process has a lease on it.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(File::from(open(path, flags, Mode::empty())?))
}

/// The last bytes of a file, at most `limit`.
pub fn tail(mut file: File, limit: u64) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(limit)))?;
    head(file, limit)
}

/// The first bytes of a file, at most `limit`.
pub fn head(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The whole file.
///
/// # Errors
/// The file is longer than `limit`.
pub fn whole(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let bytes = head(file, limit.saturating_add(1))?;
    if bytes.len() as u64 > limit {
        let text = format!("longer than {limit} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}
