//! The preload folder: its archives are imported at start, and new ones when they appear.

use std::ffi::OsStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init};
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::images::{Image, ImageError, ImageStore, ImportError, ImportOptions};
use crate::sys;

/// A watch on the preload folder.
pub struct PreloadWatch {
    folder: PathBuf,
    watch: AsyncFd<OwnedFd>,
}

impl PreloadWatch {
    /// Watches a folder from now on. It is created if missing.
    pub fn at(folder: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let watch = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;

        // A file is complete when it was closed after writing, or renamed.
        add_watch(
            &watch,
            folder,
            WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_TO | WatchFlags::ONLYDIR,
        )?;

        Ok(Self {
            folder: folder.to_owned(),
            watch: sys::watch(watch)?,
        })
    }

    /// The paths of new files; none if events were lost, or the folder was replaced.
    async fn next(&self) -> io::Result<Option<Vec<PathBuf>>> {
        self.watch
            .async_io(Interest::READABLE, |watch| self.read(watch))
            .await
    }

    fn read(&self, watch: &OwnedFd) -> io::Result<Option<Vec<PathBuf>>> {
        let mut space = [MaybeUninit::uninit(); 4096];
        let mut events = Reader::new(watch, &mut space);

        let mut paths = Vec::new();
        loop {
            match events.next() {
                Ok(event)
                    if event
                        .events()
                        .intersects(ReadFlags::QUEUE_OVERFLOW | ReadFlags::IGNORED) =>
                {
                    return Ok(None);
                }
                Ok(event) => paths.extend(
                    event
                        .file_name()
                        .map(|name| self.folder.join(OsStr::from_bytes(name.to_bytes()))),
                ),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if !paths.is_empty() => return Ok(Some(paths)),
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

impl ImageStore {
    /// Imports every archive and layout of a folder, by name. Failures are logged and do not stop
    /// the others. A missing folder is empty.
    pub async fn preload(&self, folder: &Path) -> Result<Vec<Image>, ImageError> {
        let read = |source| ImportError::Read(folder.to_owned(), source);
        let paths = match std::fs::read_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            found => found
                .and_then(|entries| {
                    entries
                        .map(|entry| Ok(entry?.path()))
                        .collect::<Result<Vec<_>, _>>()
                })
                .map_err(read)?,
        };

        Ok(self.import_all(paths).await)
    }

    /// Imports new files in the folder, until cancelled.
    pub(crate) async fn import_arrivals(&self, mut watch: PreloadWatch) -> io::Result<()> {
        loop {
            let images = match watch.next().await? {
                Some(paths) => self.import_all(paths).await,
                None => {
                    watch = PreloadWatch::at(&watch.folder)?;
                    self.preload(&watch.folder)
                        .await
                        .map_err(io::Error::other)?
                }
            };

            for image in images {
                tracing::info!(id = %image.id, "image preloaded");
            }
        }
    }

    async fn import_all(&self, mut paths: Vec<PathBuf>) -> Vec<Image> {
        paths.sort();
        paths.dedup();
        let mut images = Vec::new();
        // Copy tools hide files until they are complete.
        for path in paths.into_iter().filter(|path| !is_hidden(path)) {
            match self.import(&path, &ImportOptions::default()).await {
                Ok(found) => images.extend(found),
                Err(error) => tracing::warn!(?path, error = ?error, "cannot preload image"),
            }
        }
        images
    }
}

fn is_hidden(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| name.as_bytes().starts_with(b"."))
}
