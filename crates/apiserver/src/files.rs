//! Content of files that is read again when they change, so that certificates are replaced without
//! a restart.
//!
//! There is no file watch: the files are checked when the content is used, at most once a second.
//! Content that is invalid (half written, for example) is logged, and the last valid content stays
//! in use.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::SystemTime;
use std::{fs, io};

use arc_swap::ArcSwap;
use coracle_api::time::Timestamp;
use coracle_base::sync::Mutex;
use tokio::sync::Notify;
use tracing::{info, warn};

/// Content made of some files.
pub struct FromFiles<T> {
    files: Vec<PathBuf>,
    make: Make<T>,
    current: ArcSwap<T>,
    /// When the files were last checked, in seconds.
    looked: AtomicI64,
    stamps: Mutex<Vec<Stamp>>,
    changed: Notify,
}

type Make<T> = Box<dyn Fn(&[Vec<u8>]) -> Result<T, String> + Send + Sync>;

/// Identifies a version of a file's content.
type Stamp = (SystemTime, u64);

#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("{}: {error}", file.display())]
    Read { file: PathBuf, error: io::Error },
    #[error("{}: {reason}", file.display())]
    Content { file: PathBuf, reason: String },
}

impl<T> FromFiles<T> {
    /// `make` gets the contents in the order of `files`.
    pub fn open(
        files: Vec<PathBuf>,
        make: impl Fn(&[Vec<u8>]) -> Result<T, String> + Send + Sync + 'static,
    ) -> Result<FromFiles<T>, FileError> {
        let make: Make<T> = Box::new(make);
        let (stamps, content) = read(&files, &make)?;
        Ok(FromFiles {
            files,
            make,
            current: ArcSwap::from_pointee(content),
            looked: AtomicI64::new(0),
            stamps: Mutex::new(stamps),
            changed: Notify::new(),
        })
    }

    /// The current content of the files.
    pub fn current(&self, now: Timestamp) -> Arc<T> {
        let now = now.unix_seconds();
        if self.looked.swap(now, Ordering::Relaxed) != now {
            self.look();
        }
        self.current.load_full()
    }

    /// Resolves when other content has come into force.
    pub fn changed(&self) -> tokio::sync::futures::Notified<'_> {
        self.changed.notified()
    }

    fn look(&self) {
        let mut stamps = self.stamps.lock();
        if self
            .files
            .iter()
            .map(stamp)
            .collect::<Result<Vec<_>, _>>()
            .is_ok_and(|found| found == *stamps)
        {
            return;
        }

        match read(&self.files, &self.make) {
            Ok((found, content)) => {
                info!(files = ?self.files, "files changed; reloaded");
                *stamps = found;
                self.current.store(Arc::new(content));
                self.changed.notify_waiters();
            }
            Err(error) => {
                warn!(%error, "cannot reload changed file; keeping the previous content")
            }
        }
    }
}

fn read<T>(files: &[PathBuf], make: &Make<T>) -> Result<(Vec<Stamp>, T), FileError> {
    let (mut stamps, mut contents) = (Vec::new(), Vec::new());
    for file in files {
        let fail = |error| FileError::Read {
            file: file.clone(),
            error,
        };
        stamps.push(stamp(file).map_err(fail)?);
        contents.push(fs::read(file).map_err(fail)?);
    }

    let made = make(&contents);
    let made = made.map_err(|reason| FileError::Content {
        file: files[0].clone(),
        reason,
    })?;

    Ok((stamps, made))
}

fn stamp(file: &PathBuf) -> io::Result<Stamp> {
    let metadata = fs::metadata(file)?;
    Ok((metadata.modified()?, metadata.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_unix(seconds, 0)
    }

    #[test]
    fn new_content_is_seen_and_bad_content_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("number");
        fs::write(&file, "1").unwrap();

        let parse = |contents: &[Vec<u8>]| {
            let text = String::from_utf8_lossy(&contents[0]);
            text.parse::<u32>().map_err(|error| error.to_string())
        };
        let number = FromFiles::open(vec![file.clone()], parse).unwrap();
        assert_eq!(*number.current(at(1)), 1);

        fs::write(&file, "22").unwrap();
        assert_eq!(*number.current(at(1)), 1, "looked at once a second");
        assert_eq!(*number.current(at(2)), 22);

        fs::write(&file, "three").unwrap();
        assert_eq!(*number.current(at(3)), 22);

        fs::remove_file(&file).unwrap();
        assert_eq!(*number.current(at(4)), 22);

        fs::write(&file, "4").unwrap();
        assert_eq!(*number.current(at(5)), 4);
    }
}
