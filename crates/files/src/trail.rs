//! The path from the top of a tree down to a directory, with a bounded number of open directories.
//!
//! Of the closed ancestors, identity and read position are kept. They are reopened through `..`,
//! with an error if that is another directory than the one that was entered.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{Dir, DirEntry, fstat};

use crate::open::leave;

/// The maximum number of nested directories that are open.
const WINDOW: usize = 32;

/// The maximum depth: each level takes a few bytes.
const MAX_LEVELS: usize = 1 << 18;

pub(crate) struct Trail {
    levels: Vec<Level>,
    /// The open directories of the deepest levels.
    open: VecDeque<Dir>,
}

struct Level {
    device: u64,
    inode: u64,
    /// The position at which reading continues.
    position: i64,
}

impl Trail {
    pub(crate) fn new(top: OwnedFd) -> io::Result<Trail> {
        let mut trail = Trail {
            levels: Vec::new(),
            open: VecDeque::new(),
        };
        trail.descend(top)?;
        Ok(trail)
    }

    /// The depth including the top; 0 at the end.
    pub(crate) fn depth(&self) -> usize {
        self.levels.len()
    }

    /// The deepest directory.
    pub(crate) fn here(&self) -> io::Result<BorrowedFd<'_>> {
        Ok(self.open.back().ok_or(io::ErrorKind::NotFound)?.fd()?)
    }

    /// The next entry of the deepest directory.
    pub(crate) fn read(&mut self) -> io::Result<Option<DirEntry>> {
        let (Some(stream), Some(level)) = (self.open.back_mut(), self.levels.last_mut()) else {
            return Ok(None);
        };
        let entry = stream.read().transpose()?;
        if let Some(entry) = &entry {
            level.position = entry.offset();
        }
        Ok(entry)
    }

    /// Descends into a directory of the deepest one.
    pub(crate) fn descend(&mut self, folder: OwnedFd) -> io::Result<()> {
        if self.levels.len() >= MAX_LEVELS {
            return Err(io::Error::other(format!(
                "more than {MAX_LEVELS} nested directories"
            )));
        }

        let found = fstat(&folder)?;
        self.levels.push(Level {
            device: found.st_dev,
            inode: found.st_ino,
            position: 0,
        });

        self.open.push_back(Dir::new(folder)?);

        if self.open.len() > WINDOW {
            self.open.pop_front();
        }

        Ok(())
    }

    /// Returns to the parent of the deepest directory.
    pub(crate) fn climb(&mut self) -> io::Result<()> {
        self.levels.pop();
        let Some(left) = self.open.pop_back() else {
            return Ok(());
        };
        let Some(level) = self.levels.last().filter(|_| self.open.is_empty()) else {
            return Ok(());
        };
        let above = leave(left.fd()?)?;

        let found = fstat(&above)?;
        if (found.st_dev, found.st_ino) != (level.device, level.inode) {
            return Err(io::Error::other("a directory was moved while it was read"));
        }

        let mut stream = Dir::new(above)?;
        stream.seek(level.position)?;
        self.open.push_back(stream);

        Ok(())
    }
}
