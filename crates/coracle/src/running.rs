//! The lock file of a running server. It holds the server's PID, which is valid only while the file
//! is locked, so that a reused PID is never mistaken for a server.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;
use std::time::Duration;

use coracle_files::private;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// The lock of the server of a data directory.
pub(crate) struct Running {
    _file: File,
}

impl Running {
    /// Keeps the lock until the process ends.
    pub(crate) fn keep(self) {
        std::mem::forget(self);
    }
}

const NAME: &str = "server.lock";

/// Attempts to get a held lock, and the pause between them: a child of a killed server inherits the
/// lock until its exec.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

fn open(data_dir: &Path) -> io::Result<File> {
    // Private: any process that can open the file can lock it.
    private::open_or_create(&data_dir.join(NAME))
}

/// Opens the lock file of a server that may be running, also on a file system that has become
/// read-only.
fn open_existing(data_dir: &Path) -> io::Result<File> {
    match open(data_dir) {
        Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => {
            coracle_files::read::open_regular(&data_dir.join(NAME))
        }
        opened => opened,
    }
}

/// Takes the lock for this process; `None`: another server holds it.
pub(crate) fn begin(data_dir: &Path) -> io::Result<Option<Running>> {
    let mut file = open(data_dir)?;
    let mut tries = TRIES;
    while let Err(errno) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
        tries -= 1;
        match errno {
            Errno::WOULDBLOCK if tries > 0 => std::thread::sleep(PAUSE),
            Errno::WOULDBLOCK => return Ok(None),
            errno => return Err(errno.into()),
        }
    }

    // Overwrites in place, which needs no free space: a server starts on a full disk too.
    let number = std::process::id().to_string();
    file.write_all(number.as_bytes())?;
    file.set_len(number.len() as u64)?;

    Ok(Some(Running { _file: file }))
}

/// Whether a server runs.
pub(crate) fn is_running(data_dir: &Path) -> io::Result<bool> {
    let file = match open_existing(data_dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        opened => opened?,
    };
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Ok(false),
        Err(Errno::WOULDBLOCK) => Ok(true),
        Err(errno) => Err(errno.into()),
    }
}

/// Stops the server and waits for its end; returns whether one was running. Afterwards this process
/// holds the lock, so that no server starts during the cleanup.
pub(crate) fn end(data_dir: &Path) -> io::Result<(bool, Running)> {
    let mut file = open_existing(data_dir)?;
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
        let pid = pid
            .ok_or_else(|| io::Error::other("a server is running, but its lock file has no PID"))?;
        end_process(pid)?;
        flock(&file, FlockOperation::LockExclusive)?;
    }

    Ok((was_running, Running { _file: file }))
}

/// Sends SIGTERM to a process and waits until it has ended.
fn end_process(pid: Pid) -> io::Result<()> {
    let process = match pidfd_open(pid, PidfdFlags::empty()) {
        Err(Errno::SRCH) => return Ok(()),
        other => other?,
    };

    match pidfd_send_signal(&process, Signal::TERM) {
        Err(Errno::SRCH) => return Ok(()),
        other => other?,
    }

    loop {
        match poll(&mut [PollFd::new(&process, PollFlags::IN)], None) {
            Err(Errno::INTR) => {}
            other => return other.map(drop).map_err(Into::into),
        }
    }
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
