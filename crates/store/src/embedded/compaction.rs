//! Reclaiming disk space: a round rewrites every key, as of the round's target revision, into
//! parts, and then drops the log up to that revision. It proceeds part by part, in small steps
//! between batches, so that it needs at most one part of extra space and never delays a write for
//! long. Parts whose keys did not change are kept.
//!
//! The manifest is replaced after every part. Files that it no longer names are removed only after
//! it is durable, so a crash at any point leaves either the old files or the new ones, complete.

use super::evaluate::put_record;
use super::files::File;
use super::frame::{FileId, FrameBuffer, Position, Stamp};
use super::layout::{self, Part};
use super::record::Record;
use super::recovery::write_manifest;
use super::writer::{HOLD, RETRY, Writer};
use crate::{KeyRange, Revision, StoreError};
use bytes::Bytes;
use std::{
    io,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

/// A round in progress.
pub(crate) struct Round {
    target: Revision,
    /// The first part not yet processed.
    next: usize,
    current: Option<PartWriter>,
}

/// A part being written.
struct PartWriter {
    id: FileId,
    file: Arc<dyn File>,
    buffer: FrameBuffer,
    unsynced: usize,
    start: Bytes,
    /// The start of the remaining keys.
    cursor: Bytes,
    /// How many old parts it replaces so far.
    replaces: usize,
    keys: Vec<(Bytes, Revision, Position)>,
}

/// How much is written between two batches…
const STEP: usize = 256 << 10;
/// …and between two syncs, which delay writers.
const SYNC: usize = 1 << 20;
/// A log with more settled segments than this is rewritten into parts, however small they are.
const SETTLED_SEGMENTS: usize = 32;

impl Round {
    /// History after this revision is needed until the round ends.
    pub(crate) fn target(&self) -> Revision {
        self.target
    }
}

impl Writer {
    /// Runs the next step if one is due. Returns whether there is more to do immediately.
    pub(super) fn settle(&mut self, now: Duration) -> bool {
        match self.settle_step() {
            Ok(busy) => busy,
            Err(error) => {
                self.abandon_part();
                self.retry_after = now + RETRY;
                self.end_defragmenting(&Err(self.shared.disk_error(&error).into()));
                false
            }
        }
    }

    pub(super) fn has_background_work(&self) -> bool {
        self.round.is_some() || self.unsaved || self.wants_round() || !self.to_remove.is_empty()
    }

    pub(super) fn publish_sizes(&self) {
        let window = self.log.bytes_after(self.oldest_needed());
        self.shared
            .file_bytes
            .store(self.file_bytes(), Ordering::Relaxed);
        self.shared.window_bytes.store(window, Ordering::Relaxed);
    }

    fn settle_step(&mut self) -> io::Result<bool> {
        if self.unsaved || !self.to_remove.is_empty() {
            self.save_manifest()?;
        }

        if self.round.is_none() {
            if !self.wants_round() {
                self.end_defragmenting(&Ok(()));
                return Ok(false);
            }

            self.round = Some(Round {
                target: self.oldest_needed(),
                next: 0,
                current: None,
            });
        }

        self.round_step()?;
        self.publish_sizes();

        Ok(true)
    }

    fn round_step(&mut self) -> io::Result<()> {
        let Some(mut round) = self.round.take() else {
            return Ok(());
        };
        let stepped = match round.current.take() {
            Some(part) => self.part_step(&mut round, part),
            None if round.next == self.manifest.parts.len() => return self.end_round(round.target),
            None => self.begin_part(&mut round),
        };
        self.round = Some(round);
        stepped
    }

    fn wants_round(&self) -> bool {
        let target = self.oldest_needed();
        let behind = self.manifest.parts.iter().any(|part| part.base < target);
        if !behind {
            return false;
        }
        if !self.defragmenting.is_empty() || self.log.settled(target) > SETTLED_SEGMENTS {
            return true;
        }

        let needed = self.shared.index().live_bytes() + self.log.bytes_after(target);

        // The files may take twice the space that is needed; a quarter of that is reserved for what
        // is written during the round.
        self.file_bytes() > needed + needed * 3 / 4 + self.shared.config.segment_bytes
    }

    fn oldest_needed(&self) -> Revision {
        let compacted = self.shared.index().compacted();
        self.removable_through(compacted)
    }

    fn file_bytes(&self) -> u64 {
        self.log.bytes()
            + self
                .manifest
                .parts
                .iter()
                .map(|part| part.bytes)
                .sum::<u64>()
    }

    fn begin_part(&mut self, round: &mut Round) -> io::Result<()> {
        let part = &mut self.manifest.parts[round.next];
        let tiny = part.bytes < self.shared.config.part_bytes / 4 && round.next > 0;
        if self.changed[round.next] <= part.base && !tiny {
            part.base = round.target.max(part.base);
            self.unsaved = true;
            round.next += 1;
            return Ok(());
        }

        let start = part.start.clone();
        let id = self.log.take_file_id();
        let file = self.shared.files.create(&layout::part_name(id))?;
        let mut buffer = FrameBuffer::new(id, 0);
        layout::begin_part(&mut buffer, self.shared.store, round.target);
        let cursor = start.clone();

        let keys = Vec::new();
        round.current = Some(PartWriter {
            id,
            file,
            buffer,
            unsynced: 0,
            start,
            cursor,
            replaces: 0,
            keys,
        });

        Ok(())
    }

    fn part_step(&mut self, round: &mut Round, mut part: PartWriter) -> io::Result<()> {
        let end = self
            .manifest
            .parts
            .get(round.next + part.replaces + 1)
            .map(|next| next.start.clone());
        let range = key_range(&part.cursor, end.as_ref());

        let step = STEP.min(usize::try_from(self.shared.config.part_bytes).unwrap_or(STEP));
        let (settled, whole) = self.shared.index().settle(&range, round.target, step);
        for key in settled {
            let kv = key.found.resolve().map_err(unreadable)?;
            part.push(&kv, key.modified);
        }

        part.flush()?;
        let size = u64::from(part.buffer.end());
        match end {
            Some(next) if whole && size < self.shared.config.part_bytes / 2 => {
                part.replaces += 1;
                part.cursor = next;
                round.current = Some(part);
                Ok(())
            }
            _ if whole => self.end_part(round, part, None),
            _ if size >= self.shared.config.part_bytes => {
                let cut = part.cursor.clone();
                self.end_part(round, part, Some(cut))
            }
            _ => {
                round.current = Some(part);
                Ok(())
            }
        }
    }

    /// Replaces the parts that a new part covers. If it was cut, the last of them keeps the rest.
    fn end_part(
        &mut self,
        round: &mut Round,
        mut part: PartWriter,
        cut: Option<Bytes>,
    ) -> io::Result<()> {
        part.end()?;
        let empty = part.keys.is_empty();
        let bytes = if empty { 0 } else { part.buffer.end().into() };

        let file = Some(part.id).filter(|_| !empty);
        let new = Part {
            start: part.start,
            file,
            base: round.target,
            bytes,
        };

        if empty {
            self.to_remove.push(layout::part_name(part.id));
        } else {
            self.shared.index_mut().add_file(part.id, part.file);
        }

        for keys in part.keys.chunks(HOLD) {
            let mut index = self.shared.index_mut();
            keys.iter()
                .for_each(|(key, modified, to)| index.moved(key, *modified, *to));
        }

        let last = round.next + part.replaces;
        let end = cut
            .clone()
            .or_else(|| Some(self.manifest.parts.get(last + 1)?.start.clone()));
        let changed = self
            .shared
            .index()
            .newest_change(&key_range(&new.start, end.as_ref()));

        let gone = if cut.is_some() {
            round.next..last
        } else {
            round.next..last + 1
        };

        if let Some(cut) = cut {
            self.manifest.parts[last].start = cut;
        }

        let old: Vec<Part> = self.manifest.parts.splice(gone.clone(), [new]).collect();
        self.changed.splice(gone, [changed]);

        for id in old.into_iter().filter_map(|part| part.file) {
            self.shared.index_mut().drop_file(id);
            self.to_remove.push(layout::part_name(id));
        }

        round.next += 1;
        self.unsaved = true;

        Ok(())
    }

    fn end_round(&mut self, target: Revision) -> io::Result<()> {
        self.manifest.revision = self.manifest.revision.max(target);
        if let Some(first) = self.log.first_after(target) {
            self.manifest.first_segment = first;
            for id in self.log.drop_before(first) {
                self.shared.index_mut().drop_file(id);
                self.to_remove.push(layout::segment_name(id));
            }
        }
        self.unsaved = true;
        self.save_manifest()
    }

    /// Makes the manifest durable, and only then removes the files that it no longer names.
    fn save_manifest(&mut self) -> io::Result<()> {
        if self.unsaved {
            self.manifest.compacted = self.shared.index().compacted();
            self.manifest.leases = self.shared.leases().granted();
            write_manifest(&*self.shared.files, &self.manifest)?;
            self.unsaved = false;
        }
        for name in std::mem::take(&mut self.to_remove) {
            // Files that cannot be removed now are removed at the next start.
            self.shared.files.remove(&name).ok();
        }
        Ok(())
    }

    fn abandon_part(&mut self) {
        if let Some(part) = self.round.as_mut().and_then(|round| round.current.take()) {
            self.to_remove.push(layout::part_name(part.id));
        }
    }

    fn end_defragmenting(&mut self, answer: &Result<(), StoreError>) {
        for reply in self.defragmenting.drain(..) {
            drop(reply.send(answer.clone())); // the caller may have stopped waiting
        }
    }
}

impl PartWriter {
    fn push(&mut self, kv: &crate::KeyValue, modified: Revision) {
        let stamp = Stamp {
            revision: modified,
            time: 0,
            batch: 0,
        };
        let at = self.buffer.push(stamp, |out| put_record(kv).encode(out));
        self.cursor = after(&kv.key);
        self.keys.push((kv.key.clone(), modified, at));
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file
            .write_at(self.buffer.start().into(), self.buffer.bytes())?;
        self.unsynced += self.buffer.bytes().len();
        self.buffer.advance();
        if self.unsynced >= SYNC {
            self.file.sync()?;
            self.unsynced = 0;
        }
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        let stamp = Stamp {
            revision: Revision::ZERO,
            time: 0,
            batch: 0,
        };

        self.buffer.push(stamp, |out| {
            Record::End {
                keys: self.keys.len() as u64,
            }
            .encode(out)
        });

        self.flush()?;

        self.file.sync()
    }
}

/// The keys from `start` to `end`, or all the rest.
fn key_range(start: &Bytes, end: Option<&Bytes>) -> KeyRange {
    match end {
        Some(end) => KeyRange::between(start.clone(), end.clone()),
        None => KeyRange::from(start.clone()),
    }
}

/// The first key after `key`.
pub(super) fn after(key: &[u8]) -> Bytes {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    Bytes::from(next)
}

fn unreadable(error: StoreError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
