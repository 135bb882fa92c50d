//! The folder of one container: its named pipes, and the record that another supervisor needs to
//! take over.
//!
//! The streams are named pipes, so that a successor can open them. The container's output is opened
//! for reading too: while there is no other reader, output is buffered and writing is no error.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};

use coracle_supervisor::protocol::held::{self, Held};
use coracle_supervisor::protocol::{decode, encode};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};

use crate::init::Streams;
use crate::step::{During as _, StepError};

pub(crate) struct ContainerFolder(String);

/// The pipes of a container without a terminal.
pub(crate) struct Pipes {
    pub(crate) theirs: Streams,
    pub(crate) stdin: Option<OwnedFd>,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

/// Options for private files: output and records may contain secrets.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    // Links are not followed, and opening a pipe does not block.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    options.mode(0o600).custom_flags(flags);
    options
}

/// Writes a private file.
pub(crate) fn write_private(path: &str, bytes: &[u8]) -> io::Result<()> {
    private()
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)?
        .write_all(bytes)
}

impl ContainerFolder {
    pub(crate) fn of(pod: &str, container: &str) -> Self {
        Self(format!("{pod}/{}/{container}", held::CONTAINERS))
    }

    pub(crate) fn create(&self) -> Result<(), StepError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.0)
            .during(|| format!("create {}", self.0))
    }

    pub(crate) fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.0)
    }

    /// Removes the folder. Failures are ignored: it is deleted with the pod.
    pub(crate) fn remove(&self) {
        fs::remove_dir_all(&self.0).unwrap_or_default();
    }

    /// Writes the record atomically.
    pub(crate) fn save(&self, held: &Held) -> Result<(), StepError> {
        let (unfinished, path) = (self.path("held.new"), self.path(held::RECORD));
        let saved =
            write_private(&unfinished, &encode(held)).and_then(|()| fs::rename(&unfinished, &path));
        saved.during(|| format!("write {path}"))
    }

    pub(crate) fn load(&self) -> Option<Held> {
        decode(&fs::read(self.path(held::RECORD)).ok()?).ok()
    }

    pub(crate) fn make_pipes(&self, stdin: bool) -> Result<Pipes, StepError> {
        let (their_stdin, our_stdin) = if stdin {
            let path = self.make_pipe(held::STDIN)?;
            // Non-blocking, since opening one end blocks until the other is open.
            let theirs = self.open(held::STDIN, OFlags::RDONLY | OFlags::NONBLOCK)?;
            let ours = self.open(held::STDIN, OFlags::WRONLY | OFlags::NONBLOCK)?;
            rustix::fs::fcntl_setfl(&theirs, OFlags::empty()).during(|| format!("open {path}"))?;
            (theirs, Some(ours))
        } else {
            let nothing = open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
            (nothing.during(|| "open /dev/null".to_owned())?, None)
        };

        let (their_stdout, stdout) = self.make_output(held::STDOUT)?;
        let (their_stderr, stderr) = self.make_output(held::STDERR)?;
        let theirs = Streams {
            stdin: their_stdin,
            stdout: their_stdout,
            stderr: their_stderr,
        };

        Ok(Pipes {
            theirs,
            stdin: our_stdin,
            stdout,
            stderr,
        })
    }

    fn make_output(&self, name: &str) -> Result<(OwnedFd, OwnedFd), StepError> {
        self.make_pipe(name)?;
        Ok((self.open(name, OFlags::RDWR)?, self.reader(name)?))
    }

    fn make_pipe(&self, name: &str) -> Result<String, StepError> {
        let path = self.path(name);
        mknodat(
            CWD,
            path.as_str(),
            FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .during(|| format!("create pipe {path}"))?;
        Ok(path)
    }

    fn open(&self, name: &str, flags: OFlags) -> Result<OwnedFd, StepError> {
        let path = self.path(name);
        open(path.as_str(), flags | OFlags::CLOEXEC, Mode::empty())
            .during(|| format!("open {path}"))
    }

    /// Opens the read end of an output.
    pub(crate) fn reader(&self, name: &str) -> Result<OwnedFd, StepError> {
        self.open(name, OFlags::RDONLY | OFlags::NONBLOCK)
    }

    /// Opens the write end of the input; none if there is none, or no reader.
    pub(crate) fn input(&self) -> Option<OwnedFd> {
        self.open(held::STDIN, OFlags::WRONLY | OFlags::NONBLOCK)
            .ok()
    }

    /// Removes the input pipe, so that a successor does not open it.
    pub(crate) fn close_input(&self) {
        fs::remove_file(self.path(held::STDIN)).unwrap_or_default();
    }
}
