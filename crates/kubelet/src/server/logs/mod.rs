//! Container logs for the kubelet API.
//!
//! [`options`] parses the query, [`instance`] finds the container instance, [`file`] reads lines,
//! [`line`] prints them, [`follow`] waits for more. [`end`] is the fallback for termination
//! messages.

mod end;
mod file;
mod follow;
mod instance;
mod line;
pub mod options;
mod sys;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use coracle_cri::Runtime;
pub(crate) use end::tail_of;
use file::LogFile;
use follow::{Follow, LogChange};
pub(super) use instance::instance;
use line::LinePrinter;
pub use options::LogOptions;

/// What is printed of a log.
#[cfg(any(test, feature = "fuzz"))]
pub(super) fn print_lines(options: LogOptions, log: &[u8]) -> Vec<u8> {
    let (mut printer, mut out) = (LinePrinter::new(options), Vec::new());
    for line in log.split_inclusive(|byte| *byte == b'\n') {
        printer.line(line, &mut out);
    }
    out
}

/// Output is sent in chunks of this size.
const CHUNK: usize = 32 << 10;

/// An open log.
pub(super) struct Log {
    path: PathBuf,
    file: LogFile,
    printer: LinePrinter,
    follow: Option<Follow>,
    /// The log was rotated: the next file is read after this one.
    replaced: bool,
    /// The log is complete.
    ended: bool,
}

impl Log {
    pub(super) async fn open(
        runtime: Arc<dyn Runtime>,
        container: &str,
        path: PathBuf,
        options: LogOptions,
    ) -> io::Result<Log> {
        // Before the file is read, so that no write is missed.
        let follow = match options.follow {
            true => Some(Follow::begin(runtime, container, &path).await?),
            false => None,
        };

        let file = LogFile::open(&path, options.tail_lines).await?;
        let ended = follow.is_none();
        Ok(Log {
            path,
            file,
            printer: LinePrinter::new(options),
            follow,
            replaced: false,
            ended,
        })
    }

    /// The next chunk of output; `None`: the end.
    ///
    /// # Cancellation
    /// Must not be cancelled: data that was read would be lost.
    pub(super) async fn next(&mut self) -> io::Result<Option<Bytes>> {
        let mut out = Vec::new();
        loop {
            while let Some(line) = self.file.line() {
                self.printer.line(&line, &mut out);
                if out.len() >= CHUNK {
                    return Ok(Some(out.into()));
                }
            }

            if self.printer.is_done() {
                return Ok((!out.is_empty()).then(|| out.into()));
            }
            if self.file.read().await? {
                continue;
            }
            if !out.is_empty() {
                return Ok(Some(out.into()));
            }

            if std::mem::take(&mut self.replaced) {
                self.open_next().await?;
            } else if self.ended {
                return Ok(self.incomplete_line());
            } else if let Some(follow) = &mut self.follow {
                match follow.next_change().await? {
                    LogChange::Grown => {}
                    LogChange::Replaced => self.replaced = true,
                    LogChange::Ended => self.ended = true,
                }
            }
        }
    }

    async fn open_next(&mut self) -> io::Result<()> {
        match LogFile::open(&self.path, None).await {
            Ok(file) => self.file = file,
            // It was deleted again: wait for another one, or for the exit of the container.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// An incomplete last line.
    fn incomplete_line(&mut self) -> Option<Bytes> {
        let rest = self.file.rest();
        let mut out = Vec::new();
        if !rest.is_empty() {
            self.printer.line(&rest, &mut out);
        }
        (!out.is_empty()).then(|| out.into())
    }
}
