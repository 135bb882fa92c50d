//! What a person does to a store by hand: back it up, restore it, check it. Each answers with a
//! report to print.

use super::backup::{
    BackupError, CheckReport, RestoreReport, check as check_files, import as import_files, keys_in,
    restore as restore_files,
};
use super::clock::SystemClock;
use super::config::Config;
use super::files::{Files, PRIVATE, RealFiles};
use super::open_error::OpenError;
use super::{Backup, Embedded};
use crate::face::{Snapshot, SnapshotError};
use crate::migrate::Copied;
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
    #[error("the store could not be read")]
    Read(#[from] StoreError),
    #[error("the server that has the store open did not hand it out")]
    Running(#[from] SnapshotError),
    #[error("{action} {path} failed")]
    File {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

/// What a backup holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupReport {
    pub keys: u64,
    pub revision: Revision,
    pub bytes: u64,
}

/// Backs up the store in `directory`, which nobody may have open, to the file `to`.
pub fn backup(directory: &Path, to: &Path) -> Result<BackupReport, CommandError> {
    let files = existing(directory)?;
    let (store, _driver) = Embedded::open_to_read(files, Arc::new(SystemClock::default()))?;
    write_backup(store.backup(), to)
}

/// Backs up a running store through the face that it shows at `socket`, to the file `to`.
pub async fn backup_of_running(socket: &Path, to: &Path) -> Result<BackupReport, CommandError> {
    let mut file = Unfinished::create(to)?;
    let mut snapshot = Snapshot::ask(socket).await?;
    while let Some(piece) = snapshot.next().await? {
        file.write(&piece)?;
    }

    let bytes = fs::read(&file.at).map_err(file.failed("reading"))?;
    let keys = keys_in(&to.display().to_string(), &bytes)?;
    let bytes = bytes.len() as u64;
    file.finish()?;

    Ok(BackupReport {
        keys,
        revision: snapshot.revision(),
        bytes,
    })
}

/// Writes a backup of a running store to the file `to`, which appears once it is whole and durable,
/// and which only its owner may read. Reads and writes the disk: call it where that holds nobody
/// up.
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

/// A file on its way: it has its name once it is whole and durable, and is gone if it never is.
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
            action: "creating",
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
        written.map_err(self.failed("writing"))
    }

    fn finish(mut self) -> Result<(), CommandError> {
        self.file.sync_all().map_err(self.failed("writing"))?;
        fs::rename(&self.at, self.to).map_err(self.failed("naming"))?;
        self.whole = true;
        Ok(())
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if !self.whole {
            // Whoever is told of the failure need not hear of this one too.
            fs::remove_file(&self.at).unwrap_or_default();
        }
    }
}

/// Makes a store in the empty or absent `directory` of what another store holds, with a revision
/// above `above`, or far above that store's where it is not known how far it will have come.
pub fn import(
    copied: Copied,
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

/// The store in `directory`, which nobody may have open, as it stands.
pub fn open(directory: &Path) -> Result<Embedded, CommandError> {
    Ok(Embedded::open(
        Config::default(),
        existing(directory)?,
        Arc::new(SystemClock::default()),
    )?)
}

fn fresh(directory: &Path) -> Result<Arc<dyn Files>, OpenError> {
    let place = directory.display().to_string();
    let files = RealFiles::new(directory).map_err(OpenError::io(&place, "making the directory"))?;
    Ok(Arc::new(files))
}

/// Makes a store in the empty or absent `directory` from the backup `from`, with a revision above
/// `above`, or far above the backup's where it is not known how far the lost store had come.
pub fn restore(
    from: &Path,
    directory: &Path,
    above: Option<Revision>,
) -> Result<RestoreReport, CommandError> {
    let failed = |source| CommandError::File {
        action: "reading",
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

/// Reads everything in the store of `directory`, which nobody may have open, and changes nothing.
pub fn check(directory: &Path) -> Result<CheckReport, CommandError> {
    Ok(check_files(&existing(directory)?)?)
}

fn existing(directory: &Path) -> Result<Arc<dyn Files>, OpenError> {
    let place = directory.display().to_string();
    let files =
        RealFiles::existing(directory).map_err(OpenError::io(&place, "opening the directory"))?;
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
            "restored {} keys as of revision {}; the store is at revision {} now, everything older counts as compacted",
            self.keys, self.backup_revision, self.revision
        )
    }
}

impl fmt::Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "sound: {} keys, {} leases, revision {}",
            self.keys, self.leases, self.revision
        )?;

        writeln!(f, "history is kept from revision {} on", self.compacted)?;
        write!(
            f,
            "{} bytes of files for {} bytes of live data",
            self.file_bytes, self.live_bytes
        )?;

        if self.torn_bytes > 0 {
            write!(
                f,
                "\nthe last {} bytes of the log are no whole write and do not count: what a power cut leaves of \
                 writes that nobody was told of yet, unless the end of the file was damaged later",
                self.torn_bytes
            )?;
        }

        Ok(())
    }
}
