//! The log of a container: which file it is, and what is shown of it.
//!
//! [`options`] say what is wanted, [`which`] finds the instance of the container, [`file`] reads
//! lines, [`line`] shows them, [`follow`] waits for more. The [`end`] of a log stands for the last
//! words of a container that left none.

mod end;
mod file;
mod follow;
mod line;
pub mod options;
mod sys;
mod which;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use coracle_cri::Runtime;
pub(crate) use end::end_of;
use file::LogFile;
use follow::{Follow, News};
use line::Show;
pub use options::LogOptions;
pub(super) use which::instance;

/// What is gathered before it is sent, where there is so much.
const CHUNK: usize = 32 << 10;

/// A log that is being read.
pub(super) struct Log {
    path: PathBuf,
    file: LogFile,
    show: Show,
    follow: Option<Follow>,
    /// Another file has the name: it is next when this one has been read.
    replaced: bool,
    /// Nothing more will be written.
    ended: bool,
}

impl Log {
    pub(super) async fn open(
        runtime: Arc<dyn Runtime>,
        container: &str,
        path: PathBuf,
        options: LogOptions,
    ) -> io::Result<Log> {
        // Before the file is read: what is written meanwhile must not be missed.
        let follow = match options.follow {
            true => Some(Follow::begin(runtime, container, &path).await?),
            false => None,
        };

        let file = LogFile::open(&path, options.tail_lines).await?;
        let ended = follow.is_none();
        Ok(Log {
            path,
            file,
            show: Show::new(options),
            follow,
            replaced: false,
            ended,
        })
    }

    /// What is to be shown next; `None`: that was all.
    ///
    /// # Cancellation
    /// Must not be cancelled: what has been read would be lost.
    pub(super) async fn next(&mut self) -> io::Result<Option<Bytes>> {
        let mut out = Vec::new();
        loop {
            while let Some(line) = self.file.line() {
                self.show.line(&line, &mut out);
                if out.len() >= CHUNK {
                    return Ok(Some(out.into()));
                }
            }

            if self.show.is_done() {
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
                return Ok(self.last_words());
            } else if let Some(follow) = &mut self.follow {
                match follow.news().await? {
                    News::Grown => {}
                    News::Replaced => self.replaced = true,
                    News::Ended => self.ended = true,
                }
            }
        }
    }

    async fn open_next(&mut self) -> io::Result<()> {
        match LogFile::open(&self.path, None).await {
            Ok(file) => self.file = file,
            // It has been taken away again: another will come, or the container end.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// A line that was cut off when the container ended.
    fn last_words(&mut self) -> Option<Bytes> {
        let rest = self.file.rest();
        let mut out = Vec::new();
        if !rest.is_empty() {
            self.show.line(&rest, &mut out);
        }
        (!out.is_empty()).then(|| out.into())
    }
}
