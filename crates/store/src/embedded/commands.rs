//! What a person does to a store by hand: back it up, restore it, check it. Each answers with a report to print.

use super::backup::{
    BackupError, CheckReport, RestoreReport, check as check_files, restore as restore_files,
};
use super::clock::SystemClock;
use super::config::Config;
use super::files::{Files, PRIVATE, RealFiles};
use super::open_error::OpenError;
use super::{Backup, Embedded};
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
    #[error("{action} {path} failed")]
    File { action: &'static str, path: PathBuf, source: io::Error },
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
    let (store, _driver) = Embedded::open_driven(Config::default(), files, Arc::new(SystemClock::default()))?;
    write_backup(store.backup(), to)
}

/// Writes a backup of a running store to the file `to`, which appears once it is whole and durable, and which
/// only its owner may read. Reads and writes the disk: call it where that holds nobody up.
pub fn write_backup(mut backup: Backup, to: &Path) -> Result<BackupReport, CommandError> {
    let failed = |action| move |source| CommandError::File { action, path: to.to_owned(), source };
    let unfinished = to.with_extension("unfinished");
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(PRIVATE);
    let mut file = options.open(&unfinished).map_err(failed("creating"))?;
    let mut bytes = 0;
    while let Some(piece) = backup.next_piece()? {
        file.write_all(&piece).map_err(failed("writing"))?;
        bytes += piece.len() as u64;
    }
    file.sync_all().map_err(failed("writing"))?;
    fs::rename(&unfinished, to).map_err(failed("naming"))?;
    Ok(BackupReport { keys: backup.keys(), revision: backup.revision(), bytes })
}

/// Makes a store in the empty or absent `directory` from the backup `from`, with a revision above `above`, or far
/// above the backup's where it is not known how far the lost store had come.
pub fn restore(
    from: &Path,
    directory: &Path,
    above: Option<Revision>,
) -> Result<RestoreReport, CommandError> {
    let failed = |source| CommandError::File { action: "reading", path: from.to_owned(), source };
    let bytes = fs::read(from).map_err(failed)?;
    let place = directory.display().to_string();
    let files = RealFiles::new(directory).map_err(OpenError::io(&place, "making the directory"))?;
    let files: Arc<dyn Files> = Arc::new(files);
    let name = from.display().to_string();
    Ok(restore_files(&name, &bytes, &files, above, &SystemClock::default())?)
}

/// Reads everything in the store of `directory`, which nobody may have open, and changes nothing.
pub fn check(directory: &Path) -> Result<CheckReport, CommandError> {
    Ok(check_files(&existing(directory)?)?)
}

fn existing(directory: &Path) -> Result<Arc<dyn Files>, OpenError> {
    let place = directory.display().to_string();
    let files = RealFiles::existing(directory).map_err(OpenError::io(&place, "opening the directory"))?;
    Ok(Arc::new(files))
}

impl fmt::Display for BackupReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "backed up {} keys at revision {} ({} bytes)", self.keys, self.revision, self.bytes)
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
        writeln!(f, "sound: {} keys, {} leases, revision {}", self.keys, self.leases, self.revision)?;
        writeln!(f, "history is kept from revision {} on", self.compacted)?;
        write!(f, "{} bytes of files for {} bytes of live data", self.file_bytes, self.live_bytes)?;
        if self.torn_bytes > 0 {
            write!(
                f,
                "\nthe last {} bytes of the log were never acknowledged and do not count",
                self.torn_bytes
            )?;
        }
        Ok(())
    }
}
