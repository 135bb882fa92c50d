//! Whether a server runs on a data directory, and which process that is: it holds a lock there and
//! has written its number beside it. So a number is never that of another process which came later.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;
use std::time::Duration;

use coracle_files::private;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// A lock that says: this process is the server here.
pub(crate) struct Running {
    _file: File,
}

impl Running {
    /// Keeps the lock until the process ends: what it has open is not free before.
    pub(crate) fn keep(self) {
        std::mem::forget(self);
    }
}

const NAME: &str = "server.lock";

/// How often a lock that is held is tried again, and after how long each time: a program that a
/// killed server was just starting has its lock too, until it runs.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

fn open(data_dir: &Path) -> io::Result<File> {
    // Whoever can open it can hold it.
    private::open_or_create(&data_dir.join(NAME))
}

/// The lock of a server that may run: it is ended also where its disk has become read-only.
fn open_of_another(data_dir: &Path) -> io::Result<File> {
    match open(data_dir) {
        Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => {
            coracle_files::read::open_regular(&data_dir.join(NAME))
        }
        opened => opened,
    }
}

/// Says that this process is the server; none: another one is.
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

    // Over what is there, which takes no room: a full disk keeps no server from starting.
    let number = std::process::id().to_string();
    file.write_all(number.as_bytes())?;
    file.set_len(number.len() as u64)?;

    Ok(Some(Running { _file: file }))
}

/// Asks the server to end and waits until it has; whether there was one. Afterwards this process
/// holds the lock, so that no other begins while what is left is put away.
pub(crate) fn end(data_dir: &Path) -> io::Result<(bool, Running)> {
    let mut file = open_of_another(data_dir)?;
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
        let pid = pid.ok_or_else(|| {
            io::Error::other("a server runs, but has not said which process it is")
        })?;
        end_process(pid)?;
        flock(&file, FlockOperation::LockExclusive)?;
    }

    Ok((was_running, Running { _file: file }))
}

/// Asks a process to end, and waits until it has: only then everything that it held is free.
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
