//! Output of a container: read from its pipes or terminal, written to its log, copied to attached
//! clients.

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

/// The read size, and the number of reads before other streams are served.
const CHUNK: usize = 16 << 10;
const TURNS: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

impl Stream {
    /// Its name in the container's folder and log.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Stream::Stdout => STDOUT,
            Stream::Stderr => STDERR,
        }
    }
}

/// Reads at most one chunk, replacing the content. Touches only as much memory as is read.
fn read(source: &OwnedFd, chunk: &mut Vec<u8>) -> rustix::io::Result<usize> {
    chunk.clear();
    chunk.reserve_exact(CHUNK);
    rustix::io::read(source, rustix::buffer::spare_capacity(chunk))
}

/// One stream of a container's output.
pub(crate) struct Output {
    pub(crate) stream: Stream,
    /// None when it has ended, or for a terminal that the runtime will return.
    pub(crate) source: Option<OwnedFd>,
    lines: Lines,
    /// None if nothing is spooled: there is no log, or the disk is full.
    spool: Option<Spool>,
    pub(crate) attachments: Vec<Attachment>,
}

/// Why reading stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pumped {
    /// Nothing more to read now.
    Empty,
    /// There may be more; other streams are next.
    Enough,
    /// End of the stream.
    Ended,
}

impl Output {
    pub(crate) fn new(stream: Stream, source: Option<OwnedFd>, spool: Option<Spool>) -> Self {
        Self {
            stream,
            source,
            lines: Lines::new(stream),
            spool,
            attachments: Vec::new(),
        }
    }

    /// Logs output that a previous supervisor spooled and did not log.
    pub(crate) fn resume(&mut self, log: &mut Log) {
        let Some(spool) = &self.spool else { return };
        let rest = spool.rest(log.done(self.stream));
        let mut text = Vec::new();
        self.lines.feed(&rest, &mut text);
        self.write(&text, log);
    }

    /// Reads available output; at most a few chunks unless `all`.
    pub(crate) fn pump(&mut self, log: &mut Log, all: bool) -> Pumped {
        let mut chunk = Vec::new();
        let mut text = Vec::new();
        for _ in 0..if all { usize::MAX } else { TURNS } {
            let Some(source) = &self.source else {
                self.end_lines(log);
                return Pumped::Ended;
            };

            let taken = match &mut self.spool {
                Some(spool) => spool.take(source, &mut chunk),
                None => read(source, &mut chunk),
            };

            match taken {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Pumped::Empty,
                // The disk is full: continue without a spool.
                Err(_) if self.spool.is_some() => self.give_up_spool(log),
                // A terminal returns EIO when the last program has closed it.
                Ok(0) | Err(_) => {
                    self.end_lines(log);
                    self.attachments.iter_mut().for_each(Attachment::end);
                    return Pumped::Ended;
                }
                Ok(_) => {
                    text.clear();

                    if self.spool.as_ref().is_some_and(|spool| !spool.is_whole()) {
                        self.give_up_spool(log);
                    }

                    self.lines.feed(&chunk, &mut text);

                    if self.spool.as_ref().is_some_and(Spool::is_overdue) {
                        // A very long line: log it as a part, so that the spool can be truncated.
                        self.lines.end(&mut text);
                    }

                    self.write(&text, log);
                    self.attachments
                        .iter_mut()
                        .for_each(|attachment| attachment.send(&chunk));

                    if self.is_held_up() && !all {
                        return Pumped::Empty;
                    }
                }
            }
        }

        Pumped::Enough
    }

    /// Logs an unfinished line.
    fn end_lines(&mut self, log: &mut Log) {
        let mut text = Vec::new();
        self.lines.end(&mut text);
        self.write(&text, log);
    }

    /// Stops spooling. A successor must not log the spool again.
    fn give_up_spool(&mut self, log: &mut Log) {
        if let Some(spool) = self.spool.take() {
            log.commit(self.stream, spool.end());
        }
    }

    /// Logs lines, and records the logged length.
    fn write(&mut self, text: &[u8], log: &mut Log) {
        if text.is_empty() {
            return;
        }
        let Some(spool) = &mut self.spool else {
            return log.write_unspooled(text);
        };
        log.write(text);
        log.commit(self.stream, spool.end() - self.lines.begun());
        if self.lines.begun() == 0 && spool.truncate_if_large() {
            log.commit(self.stream, 0);
        }
    }

    /// Whether an attached client is too slow: then the container blocks, as it would on a
    /// terminal.
    pub(crate) fn is_held_up(&self) -> bool {
        self.attachments.iter().any(Attachment::is_full)
    }

    pub(crate) fn source(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.source.as_ref().map(|source| source.as_fd())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rustix::pipe::{PipeFlags, pipe_with};

    use super::*;

    #[test]
    fn output_without_newlines_fills_no_spool() {
        let folder = std::env::temp_dir().join(format!("coracle-spool-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
        let mut log = Log::open(Some(&path("log")), &path("progress")).unwrap();

        let (reader, writer) = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC).unwrap();
        let mut output = Output::new(
            Stream::Stdout,
            Some(reader),
            Some(Spool::open(&path("spool")).unwrap()),
        );

        let mut printed = Vec::new();

        // Chunks of an odd length, so that no part of a line ends with one.
        for turn in 0..2000_u32 {
            let chunk = vec![b'a' + u8::try_from(turn % 26).unwrap(); 5003];
            rustix::io::write(&writer, &chunk).unwrap();
            printed.extend_from_slice(&chunk);
            assert_eq!(output.pump(&mut log, false), Pumped::Empty);
            assert!(
                fs::metadata(path("spool")).unwrap().len() < 3 << 20,
                "after {} bytes",
                printed.len()
            );
        }

        drop(writer);
        assert_eq!(output.pump(&mut log, true), Pumped::Ended);

        let mut logged = Vec::new();
        for line in fs::read_to_string(path("log")).unwrap().lines() {
            let mut parts = line.splitn(4, ' ').skip(2);
            assert_eq!(parts.next(), Some("P"));
            let text = parts.next().unwrap();
            assert!(text.len() <= 16 << 10, "a part of {} bytes", text.len());
            logged.extend_from_slice(text.as_bytes());
        }

        assert!(
            logged == printed,
            "{} bytes of {} are in the log",
            logged.len(),
            printed.len()
        );

        fs::remove_dir_all(&folder).unwrap();
    }
}
