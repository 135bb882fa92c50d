//! The way from the top of a tree down to a folder, with a bounded number of folders open.
//!
//! Of folders further up it is known which they are, and how far they have been read. The way back
//! up goes through `..` and ends with an error where it leads to another folder than the one that
//! was entered.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{Dir, DirEntry, fstat};

use crate::open::leave;

/// Most folders that are open at a time, one below the other.
const WINDOW: usize = 32;

/// Most folders one below the other: what is known of each takes some bytes.
const MOST_LEVELS: usize = 1 << 18;

pub(crate) struct Trail {
    levels: Vec<Level>,
    /// Of the deepest levels.
    open: VecDeque<Dir>,
}

struct Level {
    device: u64,
    inode: u64,
    /// Where its stream goes on.
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

    /// How many folders it is from the top, with the top; 0 where the way ended.
    pub(crate) fn depth(&self) -> usize {
        self.levels.len()
    }

    /// The deepest folder.
    pub(crate) fn here(&self) -> io::Result<BorrowedFd<'_>> {
        Ok(self.open.back().ok_or(io::ErrorKind::NotFound)?.fd()?)
    }

    /// The next entry of the deepest folder.
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

    /// Goes on in a folder that is in the deepest one.
    pub(crate) fn descend(&mut self, folder: OwnedFd) -> io::Result<()> {
        if self.levels.len() >= MOST_LEVELS {
            return Err(io::Error::other(format!(
                "more than {MOST_LEVELS} folders one below the other"
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

    /// Goes back to the folder above the deepest one.
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
            return Err(io::Error::other("a folder was moved while it was read"));
        }

        let mut stream = Dir::new(above)?;
        stream.seek(level.position)?;
        self.open.push_back(stream);

        Ok(())
    }
}
