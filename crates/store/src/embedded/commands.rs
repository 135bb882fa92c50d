//! The commands of an administrator: back up, restore and check a store. Each returns a report to
//! print.

use super::backup::{
    BackupError, CheckReport, RestoreReport, check as check_files, import as import_files, keys_in,
    restore as restore_files,
};
use super::clock::SystemClock;
use super::config::Config;
use super::files::{Files, PRIVATE, RealFiles};
use super::open_error::OpenError;
use super::{Backup, Embedded};
use crate::etcd_server::{Snapshot, SnapshotError};
use crate::migrate::StoreContents;
use crate::{Revision, StoreError};
use std::{
    fmt, fs,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Why a command failed; the text says what to do.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Backup(#[from] BackupError),
    #[error("cannot read the store")]
    Read(#[from] StoreError),
    #[error("cannot get a snapshot from the server that has the store open")]
    Running(#[from] SnapshotError),
    #[error("cannot {action} {path}")]
    File {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

/// The result of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupReport {
    pub keys: u64,
    pub revision: Revision,
    pub bytes: u64,
}

/// Backs up the store in `directory`, which must not be open, to the file `to`.
pub fn backup(directory: &Path, to: &Path) -> Result<BackupReport, CommandError> {
    let files = existing(directory)?;
    let (store, _driver) = Embedded::open_to_read(files, Arc::new(SystemClock::default()))?;
    write_backup(store.backup(), to)
}

/// Backs up a running store through its etcd server at `socket`, to the file `to`.
pub async fn backup_of_running(socket: &Path, to: &Path) -> Result<BackupReport, CommandError> {
    let mut file = Unfinished::create(to)?;
    let mut snapshot = Snapshot::ask(socket).await?;
    while let Some(piece) = snapshot.next().await? {
        file.write(&piece)?;
    }

    let bytes = fs::read(&file.at).map_err(file.failed("read"))?;
    let keys = keys_in(&to.display().to_string(), &bytes)?;
    let bytes = bytes.len() as u64;
    file.finish()?;

    Ok(BackupReport {
        keys,
        revision: snapshot.revision(),
        bytes,
    })
}

/// Writes a backup of a running store to the file `to`, which appears once it is complete and
/// durable, and which only its owner may read. Blocks on disk I/O.
pub fn write_backup(mut backup: Backup, to: &Path) -> Result<BackupReport, CommandError> {
    let mut file = Unfinished::create(to)?;
    let mut bytes = 0;
    while let Some(piece) = backup.next_piece()? {
        file.write(&piece)?;
        bytes += piece.len() as u64;
    }

    file.finish()?;

    Ok(BackupReport {
        keys: backup.keys(),
        revision: backup.revision(),
        bytes,
    })
}

/// A file being written: it gets its name once it is complete and durable, and is removed
/// otherwise.
struct Unfinished<'p> {
    file: fs::File,
    at: PathBuf,
    to: &'p Path,
    whole: bool,
}

impl<'p> Unfinished<'p> {
    fn create(to: &'p Path) -> Result<Self, CommandError> {
        let at = to.with_extension("unfinished");
        let mut options = fs::OpenOptions::new();
        options
            .write(true)
            .create(true)
            .truncate(true)
            .mode(PRIVATE);

        let failed = |source| CommandError::File {
            action: "create",
            path: to.to_owned(),
            source,
        };
        let file = options.open(&at).map_err(failed)?;

        Ok(Unfinished {
            file,
            at,
            to,
            whole: false,
        })
    }

    fn failed(&self, action: &'static str) -> impl FnOnce(io::Error) -> CommandError {
        let path = self.to.to_owned();
        move |source| CommandError::File {
            action,
            path,
            source,
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), CommandError> {
        let written = self.file.write_all(bytes);
        written.map_err(self.failed("write"))
    }

    fn finish(mut self) -> Result<(), CommandError> {
        self.file.sync_all().map_err(self.failed("write"))?;
        fs::rename(&self.at, self.to).map_err(self.failed("rename"))?;
        self.whole = true;
        Ok(())
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if !self.whole {
            // The caller gets the first error; this one adds nothing.
            fs::remove_file(&self.at).unwrap_or_default();
        }
    }
}

/// Creates a store in the empty or missing `directory` from the contents of another store, with a
/// revision above `above`, or far above that store's if its final revision is unknown.
pub fn import(
    copied: StoreContents,
    directory: &Path,
    above: Option<Revision>,
) -> Result<RestoreReport, CommandError> {
    Ok(import_files(
        copied,
        &fresh(directory)?,
        above,
        &SystemClock::default(),
    )?)
}

/// Opens the store in `directory`, which must not be open elsewhere.
pub fn open(directory: &Path) -> Result<Embedded, CommandError> {
    Ok(Embedded::open(
        Config::default(),
        existing(directory)?,
        Arc::new(SystemClock::default()),
    )?)
}

fn fresh(directory: &Path) -> Result<Arc<dyn Files>, OpenError> {
    let path = directory.display().to_string();
    let files =
        RealFiles::new(directory).map_err(OpenError::io(&path, "cannot create the directory"))?;
    Ok(Arc::new(files))
}

/// Creates a store in the empty or missing `directory` from the backup `from`, with a revision
/// above `above`, or far above the backup's if the last revision of the lost store is unknown.
pub fn restore(
    from: &Path,
    directory: &Path,
    above: Option<Revision>,
) -> Result<RestoreReport, CommandError> {
    let failed = |source| CommandError::File {
        action: "read",
        path: from.to_owned(),
        source,
    };
    let bytes = fs::read(from).map_err(failed)?;

    let name = from.display().to_string();
    Ok(restore_files(
        &name,
        &bytes,
        &fresh(directory)?,
        above,
        &SystemClock::default(),
    )?)
}

/// Reads everything in the store of `directory`, which must not be open, without changing anything.
pub fn check(directory: &Path) -> Result<CheckReport, CommandError> {
    Ok(check_files(&existing(directory)?)?)
}

fn existing(directory: &Path) -> Result<Arc<dyn Files>, OpenError> {
    let path = directory.display().to_string();
    let files = RealFiles::existing(directory)
        .map_err(OpenError::io(&path, "cannot open the directory"))?;
    Ok(Arc::new(files))
}

impl fmt::Display for BackupReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "backed up {} keys at revision {} ({} bytes)",
            self.keys, self.revision, self.bytes
        )
    }
}

impl fmt::Display for RestoreReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "restored {} keys at revision {}; the store is now at revision {}, older revisions are compacted",
            self.keys, self.backup_revision, self.revision
        )
    }
}

impl fmt::Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "store is intact: {} keys, {} leases, revision {}",
            self.keys, self.leases, self.revision
        )?;

        writeln!(f, "history starts at revision {}", self.compacted)?;
        write!(
            f,
            "{} bytes of files, {} bytes of live data",
            self.file_bytes, self.live_bytes
        )?;

        if self.torn_bytes > 0 {
            write!(
                f,
                "\nignored {} bytes of an incomplete write at the end of the log: unacknowledged writes cut off \
                 by a crash or power loss, unless the end of the file was damaged later",
                self.torn_bytes
            )?;
        }

        Ok(())
    }
}
