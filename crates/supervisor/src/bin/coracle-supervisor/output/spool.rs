//! The spool: output that was read from a container and may not be in its log yet.
//!
//! `splice` moves bytes from the pipe into a file atomically: if the supervisor is killed, each
//! byte is in one of the two. From a terminal they are copied in two steps, so bytes just read may
//! be lost. The spool offset that is in the log is recorded after each write to the log
//! ([`super::Log::commit`]), so a successor truncates the log there and continues: no line is lost
//! or duplicated.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;

use rustix::io::Errno;
use rustix::pipe::{SpliceFlags, splice};

use super::{CHUNK, read};
use crate::folder::private;

/// The size at which the spool is truncated at the end of a line, and the size at which it is
/// truncated in any case.
const LONGEST: u64 = 1 << 20;
const OVERDUE: u64 = 2 << 20;

pub(crate) struct Spool {
    file: File,
    end: u64,
    is_whole: bool,
}

impl Spool {
    pub(crate) fn open(path: &str) -> std::io::Result<Self> {
        let file = private()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;

        let end = file.metadata()?.len();
        Ok(Self {
            file,
            end,
            is_whole: true,
        })
    }

    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Moves available data from a pipe or terminal into the spool, at most one chunk, and copies
    /// it to `chunk`.
    pub(super) fn take(
        &mut self,
        source: &OwnedFd,
        chunk: &mut Vec<u8>,
    ) -> rustix::io::Result<usize> {
        let mut at = self.end;
        let count = match splice(
            source,
            None,
            &self.file,
            Some(&mut at),
            CHUNK,
            SpliceFlags::NONBLOCK,
        ) {
            // splice needs a pipe; a terminal is copied.
            Err(Errno::INVAL) => return self.copy(source, chunk),
            moved => moved?,
        };

        chunk.clear();
        chunk.resize(count, 0);
        self.file
            .read_exact_at(chunk, self.end)
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        self.end += count as u64;

        Ok(count)
    }

    fn copy(&mut self, source: &OwnedFd, chunk: &mut Vec<u8>) -> rustix::io::Result<usize> {
        let count = read(source, chunk)?;
        // On a full disk it goes directly into the log, and is lost if this process is killed
        // before.
        if self.file.write_all_at(chunk, self.end).is_ok() {
            self.end += count as u64;
        } else {
            self.is_whole = false;
        }
        Ok(count)
    }

    /// Whether the spool contains everything that was read.
    pub(super) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Output that a previous supervisor spooled and did not log.
    pub(super) fn rest(&self, done: u64) -> Vec<u8> {
        // It was killed between truncating the spool and recording it.
        let done = if done > self.end { 0 } else { done };
        let mut rest = vec![0; usize::try_from(self.end - done).unwrap_or_default()];
        match self.file.read_exact_at(&mut rest, done) {
            Ok(()) => rest,
            Err(_) => Vec::new(),
        }
    }

    /// Whether the spool is too large without an end of line.
    pub(super) fn is_overdue(&self) -> bool {
        self.end > OVERDUE
    }

    /// Truncates a large spool. All of it must be logged.
    pub(super) fn truncate_if_large(&mut self) -> bool {
        let worth = self.end > LONGEST && self.file.set_len(0).is_ok();
        if worth {
            self.end = 0;
        }
        worth
    }
}
