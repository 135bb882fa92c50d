//! Whether a server runs on a data directory, and which process that is: it holds a lock there and has written its number
//! beside it. So a number is never that of another process which came later.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

/// A lock that says: this process is the server here. It ends with the process.
pub(crate) struct Running {
    _file: File,
}

const NAME: &str = "server.lock";

fn open(data_dir: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).read(true).write(true).open(data_dir.join(NAME))
}

/// Says that this process is the server; none: another one is.
pub(crate) fn begin(data_dir: &Path) -> io::Result<Option<Running>> {
    let mut file = open(data_dir)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    }
    file.set_len(0)?;
    write!(file, "{}", std::process::id())?;
    Ok(Some(Running { _file: file }))
}

/// Asks the server to end and waits until it has; whether there was one. Afterwards this process holds the lock, so
/// that no other begins while what is left is put away.
pub(crate) fn end(data_dir: &Path) -> io::Result<(bool, Running)> {
    let mut file = open(data_dir)?;
    let mut was_running = false;
    if let Err(errno) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
        if errno != Errno::WOULDBLOCK {
            return Err(errno.into());
        }
        was_running = true;
        let mut number = String::new();
        file.rewind()?;
        file.read_to_string(&mut number)?;
        let pid = number.trim().parse().ok().and_then(Pid::from_raw);
        let pid =
            pid.ok_or_else(|| io::Error::other("a server runs, but has not said which process it is"))?;
        match kill_process(pid, Signal::TERM) {
            Ok(()) | Err(Errno::SRCH) => {}
            Err(errno) => return Err(errno.into()),
        }
        flock(&file, FlockOperation::LockExclusive)?;
    }
    Ok((was_running, Running { _file: file }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_server_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let first = begin(folder.path()).unwrap();
        assert!(first.is_some());
        assert!(begin(folder.path()).unwrap().is_none());
        drop(first);
        let (was_running, held) = end(folder.path()).unwrap();
        assert!(!was_running);
        assert!(begin(folder.path()).unwrap().is_none());
        drop(held);
        assert!(begin(folder.path()).unwrap().is_some());
    }
}
