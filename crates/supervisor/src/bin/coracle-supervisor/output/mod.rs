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

/// Reads at most a chunk in place of what is there. Only as much memory is touched as is read.
fn read(source: &OwnedFd, chunk: &mut Vec<u8>) -> rustix::io::Result<usize> {
    chunk.clear();
    chunk.reserve_exact(CHUNK);
    rustix::io::read(source, rustix::buffer::spare_capacity(chunk))
}

/// One stream of a container's output.
pub(crate) struct Output {
    pub(crate) stream: Stream,
    /// None when it has ended; or it is a terminal that somebody else has kept, and will give back.
    pub(crate) source: Option<OwnedFd>,
    lines: Lines,
    /// None where nothing is kept for who takes over: there is no log, or no room.
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
    pub(crate) fn new(stream: Stream, source: Option<OwnedFd>, spool: Option<Spool>) -> Self {
        Self {
            stream,
            source,
            lines: Lines::new(stream),
            spool,
            attachments: Vec::new(),
        }
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
                // There is no room for what nobody may ever need.
                Err(_) if self.spool.is_some() => self.give_up_spool(log),
                // A terminal says EIO when the last program has closed it.
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
                        // A line without an end: so far it is a part, and what was kept of it can
                        // go.
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

    /// Writes what there is of a line that will not go on.
    fn end_lines(&mut self, log: &mut Log) {
        let mut text = Vec::new();
        self.lines.end(&mut text);
        self.write(&text, log);
    }

    /// From now on nothing is kept for who takes over, who is not to write again what was.
    fn give_up_spool(&mut self, log: &mut Log) {
        if let Some(spool) = self.spool.take() {
            log.commit(self.stream, spool.end());
        }
    }

    /// Writes lines into the log, and how far that is.
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

    /// Whether somebody who is attached is too slow: then the container waits, as it would on a
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
