//! What a container prints: read from its pipes or its terminal, written into its log, copied to who is attached.

mod attachment;
mod lines;
mod log;

use std::os::fd::{AsFd as _, OwnedFd};

use rustix::io::Errno;

pub(crate) use attachment::Attachment;
pub(crate) use log::Log;

use lines::Lines;

/// How much is read at once, and how often before others have their turn.
const CHUNK: usize = 16 << 10;
const TURNS: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

/// One stream of a container's output.
pub(crate) struct Output {
    pub(crate) stream: Stream,
    /// None when it has ended.
    pub(crate) source: Option<OwnedFd>,
    lines: Lines,
    pub(crate) attachments: Vec<Attachment>,
}

/// Why reading stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pumped {
    /// Nothing more is there now.
    Empty,
    /// There may be more, but it is somebody else's turn.
    Enough,
    /// There will never be more.
    Ended,
}

impl Output {
    pub(crate) fn new(stream: Stream, source: OwnedFd) -> Self {
        Self { stream, source: Some(source), lines: Lines::new(stream), attachments: Vec::new() }
    }

    /// Reads what is there, at most a few chunks unless `all` is wanted.
    pub(crate) fn pump(&mut self, log: &mut Log, all: bool) -> Pumped {
        let mut chunk = vec![0; CHUNK];
        let mut text = Vec::new();
        for _ in 0..if all { usize::MAX } else { TURNS } {
            let Some(source) = &self.source else { return Pumped::Ended };
            match rustix::io::read(source, &mut chunk) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Pumped::Empty,
                // A terminal says EIO when the last program has closed it.
                Ok(0) | Err(_) => {
                    text.clear();
                    self.lines.end(&mut text);
                    log.write(&text);
                    self.attachments.iter_mut().for_each(Attachment::end);
                    return Pumped::Ended;
                }
                Ok(count) => {
                    text.clear();
                    self.lines.feed(&chunk[..count], &mut text);
                    log.write(&text);
                    self.attachments.iter_mut().for_each(|attachment| attachment.send(&chunk[..count]));
                    if self.is_held_up() && !all {
                        return Pumped::Empty;
                    }
                }
            }
        }
        Pumped::Enough
    }

    /// Whether somebody who is attached is too slow: then the container waits, as it would on a terminal.
    pub(crate) fn is_held_up(&self) -> bool {
        self.attachments.iter().any(Attachment::is_full)
    }

    pub(crate) fn source(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.source.as_ref().map(|source| source.as_fd())
    }
}
