//! Files in a directory. Only their owner may read them: the data may be secret.

use super::{File, Files, Lock};
use std::{
    fs::{self, OpenOptions, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt},
    path::PathBuf,
    sync::Arc,
};

const LOCK: &str = "LOCK";

/// How often a held lock is tried again, and the delay between tries.
const LOCK_TRIES: u32 = 100;
const LOCK_PAUSE: std::time::Duration = std::time::Duration::from_millis(10);
/// Readable and writable only by the owner.
pub(crate) const PRIVATE: u32 = 0o600;

/// A directory of the machine's file system.
#[derive(Debug)]
pub struct RealFiles {
    directory: PathBuf,
    syncs: bool,
}

struct RealFile {
    file: fs::File,
    syncs: bool,
}

struct RealLock {
    /// Closing it releases the lock, also when the process is killed.
    _file: fs::File,
}

impl RealFiles {
    /// Creates the directory if it does not exist.
    pub fn new(directory: impl Into<PathBuf>) -> io::Result<Self> {
        let directory = directory.into();
        if let Some(parent) = directory.parent() {
            fs::create_dir_all(parent)?;
        }
        match fs::DirBuilder::new().mode(0o700).create(&directory) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                fs::read_dir(&directory)?;
            }
            made => made?,
        }
        Ok(RealFiles {
            directory,
            syncs: true,
        })
    }

    /// Leaves it to the kernel when what was written becomes durable: a power cut loses it, or
    /// leaves a store that cannot be read.
    #[must_use]
    pub fn without_sync(self) -> Self {
        RealFiles {
            syncs: false,
            ..self
        }
    }

    /// An existing directory.
    pub fn existing(directory: impl Into<PathBuf>) -> io::Result<Self> {
        let directory = directory.into();
        fs::read_dir(&directory)?;
        Ok(RealFiles {
            directory,
            syncs: true,
        })
    }

    fn file(&self, file: fs::File) -> Arc<dyn File> {
        Arc::new(RealFile {
            file,
            syncs: self.syncs,
        })
    }
}

impl Files for RealFiles {
    fn path(&self) -> String {
        self.directory.display().to_string()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let names = fs::read_dir(&self.directory)?.map(|entry| Ok(entry?.file_name()));
        names
            .map(|name| name.map(|name| name.to_string_lossy().into_owned()))
            .collect()
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .mode(PRIVATE);
        Ok(self.file(options.open(self.directory.join(name))?))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        Ok(self.file(fs::File::open(self.directory.join(name))?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.directory.join(from), self.directory.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.directory.join(name))
    }

    fn sync_directory(&self) -> io::Result<()> {
        match self.syncs {
            true => fs::File::open(&self.directory)?.sync_all(),
            false => Ok(()),
        }
    }

    fn lock(&self) -> io::Result<Option<Box<dyn Lock>>> {
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(PRIVATE);

        let path = self.directory.join(LOCK);
        let file = match options.open(&path) {
            // Who holds it goes on when the disk becomes read-only.
            Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => {
                fs::File::open(&path).map_err(|_| error)?
            }
            opened => opened?,
        };

        // A child process that the last holder was just forking shares its lock until it calls
        // exec.
        for _ in 0..LOCK_TRIES {
            match file.try_lock() {
                Ok(()) => return Ok(Some(Box::new(RealLock { _file: file }))),
                Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }

        Ok(None)
    }

    fn reads_may_block(&self) -> bool {
        true
    }
}

impl Lock for RealLock {}

impl File for RealFile {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        match self.syncs {
            true => self.file.sync_data(),
            false => Ok(()),
        }
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }
}
