//! What a container prints: read from its pipes or its terminal, written into its log, copied to who is attached.

mod attachment;
mod lines;
mod log;
mod spool;

use std::os::fd::{AsFd as _, OwnedFd};

use coracle_supervisor::protocol::held::{STDERR, STDOUT};
use rustix::io::Errno;

pub(crate) use attachment::Attachment;
pub(crate) use log::Log;
pub(crate) use spool::Spool;

use lines::Lines;

/// How much is read at once, and how often before others have their turn.
const CHUNK: usize = 16 << 10;
const TURNS: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

impl Stream {
    /// Its name in the container's folder, and in its log.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Stream::Stdout => STDOUT,
            Stream::Stderr => STDERR,
        }
    }
}

/// One stream of a container's output.
pub(crate) struct Output {
    pub(crate) stream: Stream,
    /// None when it has ended.
    pub(crate) source: Option<OwnedFd>,
    lines: Lines,
    /// None where nothing is kept for who takes over: terminals, and containers without a log.
    spool: Option<Spool>,
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
    pub(crate) fn new(stream: Stream, source: OwnedFd, spool: Option<Spool>) -> Self {
        Self { stream, source: Some(source), lines: Lines::new(stream), spool, attachments: Vec::new() }
    }

    /// Writes into the log what an earlier supervisor read and did not write.
    pub(crate) fn resume(&mut self, log: &mut Log) {
        let Some(spool) = &self.spool else { return };
        let rest = spool.rest(log.done(self.stream));
        let mut text = Vec::new();
        self.lines.feed(&rest, &mut text);
        self.write(&text, log);
    }

    /// Reads what is there, at most a few chunks unless `all` is wanted.
    pub(crate) fn pump(&mut self, log: &mut Log, all: bool) -> Pumped {
        let mut chunk = vec![0; CHUNK];
        let mut text = Vec::new();
        for _ in 0..if all { usize::MAX } else { TURNS } {
            let Some(source) = &self.source else { return Pumped::Ended };
            let taken = match &mut self.spool {
                Some(spool) => spool.take(source, &mut chunk),
                None => rustix::io::read(source, &mut chunk),
            };
            match taken {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Pumped::Empty,
                // There is no room for what nobody may ever need.
                Err(_) if self.spool.is_some() => self.spool = None,
                // A terminal says EIO when the last program has closed it.
                Ok(0) | Err(_) => {
                    text.clear();
                    self.lines.end(&mut text);
                    self.write(&text, log);
                    self.attachments.iter_mut().for_each(Attachment::end);
                    return Pumped::Ended;
                }
                Ok(count) => {
                    text.clear();
                    self.lines.feed(&chunk[..count], &mut text);
                    self.write(&text, log);
                    self.attachments.iter_mut().for_each(|attachment| attachment.send(&chunk[..count]));
                    if self.is_held_up() && !all {
                        return Pumped::Empty;
                    }
                }
            }
        }
        Pumped::Enough
    }

    /// Writes lines into the log, and how far that is.
    fn write(&mut self, text: &[u8], log: &mut Log) {
        if text.is_empty() {
            return;
        }
        log.write(text);
        let Some(spool) = &mut self.spool else { return };
        log.commit(self.stream, spool.end() - self.lines.begun());
        if self.lines.begun() == 0 && spool.begin_anew() {
            log.commit(self.stream, 0);
        }
    }

    /// Whether somebody who is attached is too slow: then the container waits, as it would on a terminal.
    pub(crate) fn is_held_up(&self) -> bool {
        self.attachments.iter().any(Attachment::is_full)
    }

    pub(crate) fn source(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.source.as_ref().map(|source| source.as_fd())
    }
}
