//! A client attached to a container's output: it gets a copy of everything from then on.
//!
//! A slow client blocks the container, as a terminal would. A client that reads nothing is
//! disconnected: no client may stop a container.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::io::Errno;

/// The buffer of a slow client; when it is full, the container blocks.
const MOST_WAITING: usize = 256 << 10;

/// How long a client with a full buffer may read nothing, in nanoseconds.
const STALL_TIMEOUT: i64 = 2_000_000_000;

pub(crate) struct Attachment {
    pub(crate) token: u64,
    /// None when the client is gone.
    sink: Option<OwnedFd>,
    waiting: Vec<u8>,
    /// Since when the buffer is full without progress, on the monotonic clock.
    stalled: Option<i64>,
    ending: bool,
}

impl Attachment {
    /// `sink` must not block.
    pub(crate) fn new(token: u64, sink: OwnedFd) -> Self {
        Self {
            token,
            sink: Some(sink),
            waiting: Vec::new(),
            stalled: None,
            ending: false,
        }
    }

    pub(crate) fn send(&mut self, chunk: &[u8]) {
        if self.sink.is_some() {
            self.waiting.extend_from_slice(chunk);
            self.flush();
        }
    }

    /// Closes the stream after the buffered data is written.
    pub(crate) fn end(&mut self) {
        self.ending = true;
        self.flush();
    }

    /// Writes buffered data, as far as possible without blocking.
    pub(crate) fn flush(&mut self) {
        while let Some(sink) = &self.sink {
            if self.waiting.is_empty() {
                if self.ending {
                    self.sink = None;
                }
                return;
            }

            match rustix::io::write(sink, &self.waiting) {
                Ok(count) => {
                    self.waiting.drain(..count);
                    self.stalled = None;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => self.close(),
            }
        }
    }

    /// Disconnects the client.
    pub(crate) fn close(&mut self) {
        self.sink = None;
        self.waiting.clear();
    }

    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() > MOST_WAITING
    }

    /// When it is disconnected; none while its buffer is not full.
    pub(crate) fn deadline(&mut self, now: i64) -> Option<i64> {
        self.is_full()
            .then(|| *self.stalled.get_or_insert(now) + STALL_TIMEOUT)
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.sink.is_none()
    }

    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub(crate) fn sink(&self) -> Option<BorrowedFd<'_>> {
        self.sink.as_ref().map(|sink| sink.as_fd())
    }
}

#[cfg(test)]
mod tests {
    use rustix::pipe::{PipeFlags, pipe_with};

    use super::*;

    #[test]
    fn a_stalled_reader_has_a_deadline_that_progress_resets() {
        let (reader, writer) = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC).unwrap();
        let mut attachment = Attachment::new(1, writer);
        attachment.send(&[0; 1000]);
        assert_eq!(attachment.deadline(10), None, "nothing waits");

        attachment.send(&vec![0; 2 * MOST_WAITING]);
        assert_eq!(attachment.deadline(10), Some(10 + STALL_TIMEOUT));
        assert_eq!(attachment.deadline(20), Some(10 + STALL_TIMEOUT));

        attachment.flush();
        assert_eq!(
            attachment.deadline(30),
            Some(10 + STALL_TIMEOUT),
            "nothing was taken"
        );

        rustix::io::read(&reader, &mut [0; 8192]).unwrap();
        attachment.flush();
        assert_eq!(attachment.deadline(40), Some(40 + STALL_TIMEOUT));
    }
}
