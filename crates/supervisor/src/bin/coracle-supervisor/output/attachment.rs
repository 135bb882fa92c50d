//! Somebody who is attached to a container's output, and gets a copy from then on.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::io::Errno;

/// What may wait for somebody who reads slowly before the container has to wait too.
const PATIENCE: usize = 256 << 10;

pub(crate) struct Attachment {
    pub(crate) token: u64,
    /// None when they are gone.
    sink: Option<OwnedFd>,
    waiting: Vec<u8>,
    ending: bool,
}

impl Attachment {
    /// `sink` must not block.
    pub(crate) fn new(token: u64, sink: OwnedFd) -> Self {
        Self { token, sink: Some(sink), waiting: Vec::new(), ending: false }
    }

    pub(crate) fn send(&mut self, chunk: &[u8]) {
        if self.sink.is_some() {
            self.waiting.extend_from_slice(chunk);
            self.flush();
        }
    }

    /// Nothing more will come: who reads sees the end when all is read.
    pub(crate) fn end(&mut self) {
        self.ending = true;
        self.flush();
    }

    /// Writes what waits, as far as it is taken.
    pub(crate) fn flush(&mut self) {
        while let Some(sink) = &self.sink {
            if self.waiting.is_empty() {
                if self.ending {
                    self.sink = None;
                }
                return;
            }
            match rustix::io::write(sink, &self.waiting) {
                Ok(count) => drop(self.waiting.drain(..count)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => self.close(),
            }
        }
    }

    /// Nobody reads any more.
    pub(crate) fn close(&mut self) {
        self.sink = None;
        self.waiting.clear();
    }

    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() > PATIENCE
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
