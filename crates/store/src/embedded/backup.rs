//! Backup, restore and check.
//!
//! A backup is one file: a header, every key at one revision, the leases, and an end record. It is
//! made while the store is running. A restore creates a new store from it, whose revision is above
//! every revision that the old store can have reached, with everything older marked compacted:
//! clients of the old store must list again, and no revision is ever used twice.

use super::Clock;
use super::clock::SystemClock;
use super::compaction::after;
use super::config::Config;
use super::evaluate::put_record;
use super::files::{File, Files, Lock};
use super::frame::{self, FileId, FrameBuffer, Stamp};
use super::index::Settled;
use super::layout::{self, BackupHeader, Manifest, Part};
use super::open_error::OpenError;
use super::record::Record;
use super::recovery::{self, write_manifest};
use super::shared::{Pin, Shared};
use crate::migrate::StoreContents;
use crate::{KeyRange, KeyValue, LeaseId, Revision, StoreError};
use bytes::Bytes;
use std::{io, sync::Arc, time::Duration};

/// A backup in progress. It keeps the history that it needs until it is dropped.
pub struct Backup {
    shared: Arc<Shared>,
    pin: Pin,
    buffer: FrameBuffer,
    cursor: Option<Bytes>,
    keys: u64,
    leases: Vec<(LeaseId, Duration)>,
    begun: bool,
}

/// Why a restore failed.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("{file} is not a complete backup: {what}. Use another one")]
    Damaged { file: String, what: String },
    #[error("{path} already contains a store: restore into an empty directory")]
    NotEmpty { path: String },
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// The result of a restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreReport {
    pub keys: u64,
    /// The revision of the backup.
    pub backup_revision: Revision,
    /// The revision of the restored store.
    pub revision: Revision,
}

/// The result of checking an intact store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckReport {
    pub revision: Revision,
    pub compacted: Revision,
    pub keys: u64,
    pub live_bytes: u64,
    pub file_bytes: u64,
    pub leases: usize,
    /// Bytes at the end of the log that are an incomplete write.
    pub torn_bytes: u64,
}

/// How much a restore raises the revision if the last revision of the lost store is unknown: eleven
/// days of a thousand writes per second.
const REVISION_BUMP: u64 = 1_000_000_000;
/// The size of a chunk.
const PIECE: usize = 256 << 10;

impl Backup {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        // The index lock is held until the revision is pinned, so that no compaction comes between.
        let index = shared.index();
        let pin = shared.pin(index.revision());
        let leases = shared.leases().granted();
        drop(index);

        Backup {
            shared: shared.clone(),
            pin,
            buffer: FrameBuffer::new(BackupHeader::FILE, 0),
            cursor: Some(Bytes::new()),
            keys: 0,
            leases,
            begun: false,
        }
    }

    /// The revision of the backup.
    pub fn revision(&self) -> Revision {
        self.pin.revision
    }

    /// How many keys were written so far.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// The next chunk; `None` after the last one. May read from disk.
    pub fn next_piece(&mut self) -> Result<Option<Bytes>, StoreError> {
        let Some(cursor) = self.cursor.take() else {
            return Ok(None);
        };

        if !self.begun {
            BackupHeader {
                store: self.shared.store,
                revision: self.pin.revision,
            }
            .append(&mut self.buffer);
            self.begun = true;
        }

        let range = KeyRange::from(cursor);
        let (settled, whole) = self.shared.index().settle(&range, self.pin.revision, PIECE);
        for Settled { found, modified } in settled {
            let kv = found.resolve()?;
            self.buffer
                .push(stamp(modified), |out| put_record(&kv).encode(out));
            self.cursor = Some(after(&kv.key));
            self.keys += 1;
        }

        if whole {
            self.cursor = None;

            for (id, ttl) in std::mem::take(&mut self.leases) {
                self.buffer.push(stamp(Revision::ZERO), |out| {
                    Record::GrantLease { id, ttl }.encode(out)
                });
            }

            self.buffer.push(stamp(Revision::ZERO), |out| {
                Record::End { keys: self.keys }.encode(out)
            });
        }

        let piece = Bytes::copy_from_slice(self.buffer.bytes());
        self.buffer.advance();

        Ok(Some(piece))
    }
}

/// Creates a store in the empty directory `files` from the backup `bytes` of the file `name`. Its
/// revision is raised above `above` (the newest that the lost store is known to have reached) or,
/// if that is unknown, far above the backup's. Files of an earlier failed attempt are removed, and
/// an attempt that fails leaves none.
pub fn restore(
    name: &str,
    bytes: &[u8],
    files: &Arc<dyn Files>,
    above: Option<Revision>,
    clock: &dyn Clock,
) -> Result<RestoreReport, BackupError> {
    let _lock = claim_empty(files)?;
    fill(&Contents::parse(name, bytes)?, files, above, clock)
}

/// Like [`restore`], from the contents of another store.
pub(crate) fn import(
    copied: StoreContents,
    files: &Arc<dyn Files>,
    above: Option<Revision>,
    clock: &dyn Clock,
) -> Result<RestoreReport, BackupError> {
    let _lock = claim_empty(files)?;
    let StoreContents {
        revision,
        keys,
        leases,
    } = copied;

    fill(
        &Contents {
            revision,
            keys,
            leases,
        },
        files,
        above,
        clock,
    )
}

/// How many keys a backup has; an error if it is incomplete.
pub(super) fn keys_in(name: &str, bytes: &[u8]) -> Result<u64, BackupError> {
    Ok(Contents::parse(name, bytes)?.keys.len() as u64)
}

/// Exists beside the files of a store until its restore has finished.
const UNFINISHED: &str = "RESTORE.unfinished";

/// Locks a directory without a store and removes the files of an unfinished restore.
fn claim_empty(files: &Arc<dyn Files>) -> Result<Box<dyn Lock>, BackupError> {
    let path = files.path();
    let lock = files
        .lock()
        .map_err(OpenError::io(&path, "cannot lock the directory"))?;
    let lock = lock.ok_or_else(|| OpenError::InUse { path: path.clone() })?;

    let names = files
        .list()
        .map_err(OpenError::io(&path, "cannot list the directory"))?;

    let has = |wanted: &str| names.iter().any(|name| name == wanted);
    if has(UNFINISHED) && !has(layout::MANIFEST) {
        remove_files(&**files);
    }

    match recovery::read_manifest(&**files) {
        Ok(None) => Ok(lock),
        _ => Err(BackupError::NotEmpty { path }),
    }
}

fn fill(
    contents: &Contents,
    files: &Arc<dyn Files>,
    above: Option<Revision>,
    clock: &dyn Clock,
) -> Result<RestoreReport, BackupError> {
    let path = files.path();
    let lifted = match above {
        Some(above) => above.max(contents.revision).next(),
        None => Revision::new(contents.revision.get() + REVISION_BUMP),
    };

    let store = u64::try_from(clock.unix().as_nanos()).unwrap_or_default();
    let begun = files
        .create(UNFINISHED)
        .and_then(|_| files.sync_directory());
    let written = begun.and_then(|()| contents.write(&**files, store, lifted));

    let done = written
        .and_then(|()| files.remove(UNFINISHED))
        .and_then(|()| files.sync_directory());
    if let Err(error) = done {
        remove_files(&**files);
        return Err(OpenError::io(&path, "cannot write the restored store")(error).into());
    }

    Ok(RestoreReport {
        keys: contents.keys.len() as u64,
        backup_revision: contents.revision,
        revision: lifted,
    })
}

/// Removes the files of an unfinished restore. The marker is removed last: the next attempt removes
/// what could not be removed now.
fn remove_files(files: &dyn Files) {
    let unfinished = |name: &String| {
        layout::file_id(name).is_some()
            || matches!(name.as_str(), layout::MANIFEST | layout::NEW_MANIFEST)
    };

    let unreferenced = files
        .list()
        .unwrap_or_default()
        .into_iter()
        .filter(unfinished);

    if unreferenced
        .map(|name| files.remove(&name))
        .filter(Result::is_err)
        .count()
        == 0
    {
        // The marker alone is harmless.
        files.remove(UNFINISHED).unwrap_or_default();
    }
}

/// Reads everything in `files` without changing anything. Fails if the store is in use.
pub fn check(files: &Arc<dyn Files>) -> Result<CheckReport, OpenError> {
    let _lock = lock_to_read(&**files)?;
    let manifest = existing_manifest(&**files)?;
    let parts: u64 = manifest.parts.iter().map(|part| part.bytes).sum();
    let now = SystemClock::default().elapsed();
    let recovered = recovery::recover(files, &Config::default(), manifest, now)?;

    Ok(CheckReport {
        revision: recovered.index.revision(),
        compacted: recovered.index.compacted(),
        keys: recovered.index.live_keys(),
        live_bytes: recovered.index.live_bytes(),
        file_bytes: parts + recovered.log.bytes(),
        leases: recovered.leases.ids().len(),
        torn_bytes: recovered.torn_bytes,
    })
}

/// Locks files for reading; `None` on a read-only disk, where they cannot be locked.
pub(super) fn lock_to_read(files: &dyn Files) -> Result<Option<Box<dyn Lock>>, OpenError> {
    let path = files.path();
    match files.lock() {
        // No other process can be writing here either.
        Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => Ok(None),
        Ok(None) => Err(OpenError::InUse { path }),
        lock => lock.map_err(OpenError::io(&path, "cannot lock the directory")),
    }
}

/// The manifest of a store that must exist.
pub(super) fn existing_manifest(files: &dyn Files) -> Result<Manifest, OpenError> {
    let missing = || OpenError::Io {
        path: files.path(),
        action: "the directory contains no store".into(),
        source: io::ErrorKind::NotFound.into(),
    };
    recovery::read_manifest(files)?.ok_or_else(missing)
}

/// The contents of a backup.
struct Contents {
    revision: Revision,
    keys: Vec<KeyValue>,
    leases: Vec<(LeaseId, Duration)>,
}

impl Contents {
    fn parse(name: &str, bytes: &[u8]) -> Result<Self, BackupError> {
        let damaged = |what: String| BackupError::Damaged {
            file: name.to_owned(),
            what,
        };

        let (header, mut offset) =
            BackupHeader::parse(bytes).map_err(|fault| damaged(fault.to_string()))?;
        let mut contents = Contents {
            revision: header.revision,
            keys: Vec::new(),
            leases: Vec::new(),
        };

        loop {
            let rest = bytes.get(offset as usize..).unwrap_or_default();
            let found = frame::parse(BackupHeader::FILE, offset, rest);

            let frame =
                found.ok_or_else(|| damaged(format!("damaged or truncated at byte {offset}")))?;
            match Record::decode(&mut { frame.payload })
                .map_err(|error| damaged(error.to_string()))?
            {
                Record::Put {
                    key,
                    value,
                    create,
                    version,
                    lease,
                } => contents.keys.push(KeyValue {
                    key: Bytes::copy_from_slice(key),
                    value: Bytes::copy_from_slice(value),
                    create_revision: create,
                    mod_revision: frame.stamp.revision,
                    version,
                    lease,
                }),
                Record::GrantLease { id, ttl } => contents.leases.push((id, ttl)),
                Record::End { keys } if keys == contents.keys.len() as u64 => return Ok(contents),
                _ => return Err(damaged(format!("unexpected content at byte {offset}"))),
            }

            offset += frame.len;
        }
    }

    /// The manifest is written last: an interrupted restore leaves no store.
    fn write(&self, files: &dyn Files, store: u64, revision: Revision) -> io::Result<()> {
        let mut manifest = Manifest::fresh(store);
        manifest.revision = revision;
        manifest.compacted = revision;
        manifest.leases.clone_from(&self.leases);
        manifest.parts.clear();
        let part_bytes = usize::try_from(Config::default().part_bytes).unwrap_or(usize::MAX);

        let mut rest = &self.keys[..];
        while !rest.is_empty() || manifest.parts.is_empty() {
            let id = FileId(frame::size(manifest.parts.len() + 1));
            let count = write_part(files, id, store, rest, part_bytes)?;
            let bytes = files.open(&layout::part_name(id))?.size()?;
            let start = manifest
                .parts
                .last()
                .map_or(Bytes::new(), |_: &Part| rest[0].key.clone());

            manifest.parts.push(Part {
                start,
                file: Some(id),
                base: revision,
                bytes,
            });

            rest = &rest[count..];
        }

        manifest.first_segment = FileId(frame::size(manifest.parts.len() + 1));
        files.sync_directory()?;

        write_manifest(files, &manifest)
    }
}

/// Writes the first keys of `kvs` as a part and returns their number.
fn write_part(
    files: &dyn Files,
    id: FileId,
    store: u64,
    kvs: &[KeyValue],
    most: usize,
) -> io::Result<usize> {
    let mut buffer = FrameBuffer::new(id, 0);
    layout::begin_part(&mut buffer, store, Revision::ZERO);

    let mut count = 0;
    for kv in kvs {
        if buffer.bytes().len() >= most {
            break;
        }
        buffer.push(stamp(kv.mod_revision), |out| put_record(kv).encode(out));
        count += 1;
    }

    buffer.push(stamp(Revision::ZERO), |out| {
        Record::End { keys: count as u64 }.encode(out)
    });
    let file: Arc<dyn File> = files.create(&layout::part_name(id))?;
    file.write_at(0, buffer.bytes())?;
    file.sync()?;

    Ok(count)
}

fn stamp(revision: Revision) -> Stamp {
    Stamp {
        revision,
        time: 0,
        batch: 0,
    }
}
