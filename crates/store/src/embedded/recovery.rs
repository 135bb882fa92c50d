//! Recovery: builds the index from the files. Parts first, then the log on top.
//!
//! The log ends at the first incomplete frame. That is no damage if the frame was part of the last
//! write: a power cut leaves such frames of unacknowledged writes. It is damage, and an error, if
//! anything shows that it had been durable: a later segment, or a later batch in the same segment.
//! Damage to the very last write cannot be distinguished from a power cut.

use super::Config;
use super::files::{File, Files, read_all, read_into};
use super::frame::{self, FileId, Frame, Position};
use super::index::{Index, Live, Write};
use super::layout::{self, HeaderFault, MANIFEST, Manifest, NEW_MANIFEST, Part, SegmentHeader};
use super::leases::Leases;
use super::log::{Log, Segment};
use super::open_error::OpenError;
use super::record::Record;
use super::retention::Marks;
use super::tail::NEW_TAIL;
use crate::{LeaseId, Revision};
use bytes::Bytes;
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

/// The state read from a store's files.
pub(crate) struct Recovered {
    pub(crate) manifest: Manifest,
    /// For each part, the newest revision that changed one of its keys.
    pub(crate) changed: Vec<Revision>,
    pub(crate) index: Index,
    pub(crate) leases: Leases,
    pub(crate) log: Log,
    pub(crate) marks: Marks,
    /// Unreferenced files, left by a crash.
    pub(crate) unreferenced: Vec<String>,
    /// Bytes at the end of the log that are an incomplete write.
    pub(crate) torn_bytes: u64,
}

/// Reads an existing store.
pub(crate) fn recover(
    files: &Arc<dyn Files>,
    config: &Config,
    manifest: Manifest,
    now: Duration,
) -> Result<Recovered, OpenError> {
    let path = files.path();
    let names = files
        .list()
        .map_err(OpenError::io(&path, "cannot list the directory"))?;
    let mut recovery = Recovery::new(files, manifest, now);
    let mut buffer = Vec::new();
    recovery.load_parts(&mut buffer)?;
    let chain = recovery.find_segments(&names)?;
    let segments = recovery.replay(&chain, &mut buffer)?;
    drop(buffer);
    recovery.check_compaction()?;
    Ok(recovery.finish(names, segments, config))
}

/// The manifest. `None`: there is no store.
pub(crate) fn read_manifest(files: &dyn Files) -> Result<Option<Manifest>, OpenError> {
    let path = files.path();
    let names = files
        .list()
        .map_err(OpenError::io(&path, "cannot list the directory"))?;
    if !names.iter().any(|name| name == MANIFEST) {
        let missing = |file| OpenError::Corrupt {
            path,
            file,
            what: format!("{MANIFEST} is missing"),
        };

        return names
            .into_iter()
            .find(|name| layout::file_id(name).is_some())
            .map_or(Ok(None), |file| Err(missing(file)));
    }

    let bytes = files.open(MANIFEST).and_then(|file| read_all(&*file));
    let bytes = bytes.map_err(OpenError::io(&path, format!("cannot read {MANIFEST}")))?;

    Manifest::decode(&bytes)
        .map(Some)
        .map_err(|fault| header_error(&path, MANIFEST, fault))
}

/// Replaces the manifest atomically and durably.
pub(crate) fn write_manifest(files: &dyn Files, manifest: &Manifest) -> std::io::Result<()> {
    let file = files.create(NEW_MANIFEST)?;
    file.write_at(0, &manifest.encode())?;
    file.sync()?;
    files.rename(NEW_MANIFEST, MANIFEST)?;
    files.sync_directory()
}

struct Recovery<'a> {
    files: &'a Arc<dyn Files>,
    path: String,
    manifest: Manifest,
    changed: Vec<Revision>,
    index: Index,
    leases: Leases,
    granted: BTreeMap<LeaseId, Duration>,
    marks: Marks,
    compacted: Revision,
    now: Duration,
    torn_bytes: u64,
}

/// A segment file on the disk.
struct SegmentFile {
    id: FileId,
    file: Arc<dyn File>,
    header: SegmentHeader,
    first_frame: u32,
    /// How much of it is valid, if the next segment says so.
    counts: Option<u32>,
}

impl<'a> Recovery<'a> {
    fn new(files: &'a Arc<dyn Files>, manifest: Manifest, now: Duration) -> Self {
        Recovery {
            files,
            path: files.path(),
            changed: manifest.parts.iter().map(|part| part.base).collect(),
            index: Index::new(manifest.revision, manifest.compacted),
            leases: Leases::default(),
            granted: manifest.leases.iter().copied().collect(),
            marks: Marks::default(),
            compacted: manifest.compacted,
            now,
            torn_bytes: 0,
            manifest,
        }
    }

    fn load_parts(&mut self, buffer: &mut Vec<u8>) -> Result<(), OpenError> {
        let mut settled = Vec::new();
        let parts = std::mem::take(&mut self.manifest.parts);
        for (number, part) in parts.iter().enumerate() {
            let end = parts.get(number + 1).map(|next| &next.start);
            self.load_part(part, end, &mut settled, buffer)?;
        }
        self.manifest.parts = parts;
        self.index.load(settled);
        Ok(())
    }

    fn load_part(
        &mut self,
        part: &Part,
        end: Option<&Bytes>,
        settled: &mut Vec<(Bytes, Live)>,
        buffer: &mut Vec<u8>,
    ) -> Result<(), OpenError> {
        let Some(id) = part.file else { return Ok(()) };
        let name = layout::part_name(id);
        let file = self
            .files
            .open(&name)
            .map_err(OpenError::io(&self.path, format!("cannot open {name}")))?;

        let len = read_into(&*file, buffer)
            .map_err(OpenError::io(&self.path, format!("cannot read {name}")))?;
        let bytes = &buffer[..len];

        let path = self.path.clone();
        let damaged = |what: String| OpenError::Corrupt {
            path: path.clone(),
            file: name.clone(),
            what,
        };

        let mut offset = layout::parse_part(id, self.manifest.store, bytes)
            .map_err(|fault| header_error(&self.path, &name, fault))?;
        loop {
            let found = frame::parse(id, offset, bytes.get(offset as usize..).unwrap_or_default());
            let frame = found.ok_or_else(|| damaged(format!("damaged at byte {offset}")))?;

            let record = Record::decode(&mut { frame.payload })
                .map_err(|error| damaged(error.to_string()))?;
            match record {
                Record::End { .. } => break,
                Record::Put {
                    key,
                    value,
                    create,
                    version,
                    lease,
                } => {
                    let inside = key >= &part.start[..] && end.is_none_or(|end| key < &end[..]);
                    let at = Position {
                        file: id,
                        offset,
                        len: frame.len,
                        record: 0,
                    };

                    let modified = frame.stamp.revision;
                    let value = Bytes::copy_from_slice(value);
                    let live = Live {
                        value,
                        create,
                        modified,
                        version,
                        lease,
                        at,
                    };

                    if inside {
                        settled.push((Bytes::copy_from_slice(key), live));
                    }
                }
                _ => return Err(damaged(format!("no key at byte {offset}"))),
            }

            offset += frame.len;
        }

        self.index.add_file(id, file);

        Ok(())
    }

    /// The valid segments, oldest first: the chain that ends with the newest complete one.
    fn find_segments(&self, names: &[String]) -> Result<Vec<SegmentFile>, OpenError> {
        let logs = names.iter().filter(|name| name.ends_with(".log"));
        let mut ids: BTreeSet<FileId> = logs.filter_map(|name| layout::file_id(name)).collect();
        ids.retain(|id| *id >= self.manifest.first_segment);

        let mut chain: VecDeque<SegmentFile> = VecDeque::new();
        while let Some(id) = ids.pop_last() {
            let expected = chain.front().map(|next| next.header.previous);
            match expected {
                // The segments between were abandoned before anything was written to them.
                Some(Some((previous, _))) if previous < id => continue,
                Some(Some((previous, _))) if previous > id => return Err(self.missing(previous)),
                Some(None) => break,
                _ => {}
            }

            let Some(mut segment) = self.open_segment(id, chain.is_empty())? else {
                continue;
            };
            segment.counts = expected.flatten().map(|(_, bytes)| bytes);
            chain.push_front(segment);
        }

        match chain.front().map(|first| first.header.previous) {
            Some(Some((previous, _))) if previous >= self.manifest.first_segment => {
                Err(self.missing(previous))
            }
            _ => Ok(chain.into()),
        }
    }

    fn missing(&self, id: FileId) -> OpenError {
        self.damaged(id, "the file is missing".into())
    }

    fn damaged(&self, id: FileId, what: String) -> OpenError {
        OpenError::Corrupt {
            path: self.path.clone(),
            file: layout::segment_name(id),
            what,
        }
    }

    /// `None`: the newest segment, whose header never became durable.
    fn open_segment(&self, id: FileId, newest: bool) -> Result<Option<SegmentFile>, OpenError> {
        let name = layout::segment_name(id);
        let reading = || OpenError::io(&self.path, format!("cannot read {name}"));
        let file = self.files.open(&name).map_err(reading())?;

        let beginning = read_beginning(&*file).map_err(reading())?;
        match SegmentHeader::parse(id, &beginning) {
            Ok((header, _)) if header.store != self.manifest.store => {
                Err(header_error(&self.path, &name, HeaderFault::Foreign))
            }
            Ok((header, first_frame)) => Ok(Some(SegmentFile {
                id,
                file,
                header,
                first_frame,
                counts: None,
            })),
            Err(HeaderFault::Damaged) if newest => {
                let bytes = read_all(&*file).map_err(reading())?;
                if frame::proves_damage(id, 0, &bytes) {
                    return Err(header_error(&self.path, &name, HeaderFault::Damaged));
                }
                Ok(None)
            }
            Err(fault) => Err(header_error(&self.path, &name, fault)),
        }
    }

    fn replay(
        &mut self,
        chain: &[SegmentFile],
        buffer: &mut Vec<u8>,
    ) -> Result<VecDeque<Segment>, OpenError> {
        let mut segments = VecDeque::new();
        let Some(first) = chain.first() else {
            return Ok(segments);
        };
        let settled = self
            .manifest
            .parts
            .iter()
            .map(|part| part.base)
            .min()
            .unwrap_or_default();

        if first.header.revision > settled {
            let what = format!(
                "begins at revision {}, expected {settled}",
                first.header.revision
            );
            return Err(self.damaged(first.id, what));
        }

        let mut revision = first.header.revision;
        for segment in chain {
            let bytes = self.replay_segment(segment, &mut revision, buffer)?;
            segments.push_back(Segment {
                id: segment.id,
                bytes,
                last: revision,
            });

            let name = layout::segment_name(segment.id);
            let file = self
                .files
                .open(&name)
                .map_err(OpenError::io(&self.path, format!("cannot open {name}")))?;
            self.index.add_file(segment.id, file);
        }

        Ok(segments)
    }

    /// Returns how much of the segment is valid.
    fn replay_segment(
        &mut self,
        segment: &SegmentFile,
        revision: &mut Revision,
        buffer: &mut Vec<u8>,
    ) -> Result<u32, OpenError> {
        let reading = OpenError::io(
            &self.path,
            format!("cannot read {}", layout::segment_name(segment.id)),
        );
        let len = read_into(&*segment.file, buffer).map_err(reading)?;
        let bytes = &buffer[..len];
        let end = segment.counts.map_or(bytes.len(), |bytes| bytes as usize);

        let mut offset = segment.first_frame;
        while (offset as usize) < end {
            let rest = bytes.get(offset as usize..).unwrap_or_default();
            let Some(frame) = frame::parse(segment.id, offset, rest) else {
                let durable = segment.counts.is_some();
                if durable || frame::proves_damage(segment.id, offset, bytes) {
                    return Err(self.damaged(segment.id, format!("damaged at byte {offset}")));
                }
                self.torn_bytes += frame::written(rest) as u64;
                break;
            };
            self.replay_frame(segment.id, offset, &frame, revision)?;

            offset += frame.len;
        }

        Ok(offset)
    }

    fn replay_frame(
        &mut self,
        file: FileId,
        offset: u32,
        frame: &Frame<'_>,
        revision: &mut Revision,
    ) -> Result<(), OpenError> {
        let records = Record::decode_all(frame.payload)
            .map_err(|error| self.damaged(file, format!("{error} at byte {offset}")))?;
        let mut writes = Vec::new();

        let mut changed = false;
        for (number, record) in records.iter().enumerate() {
            let at = Position {
                file,
                offset,
                len: frame.len,
                record: frame::size(number),
            };
            changed |= matches!(record, Record::Put { .. } | Record::Delete { .. });
            self.replay_record(record, frame.stamp.revision, at, &mut writes);
        }

        if changed {
            if frame.stamp.revision != revision.next() {
                let what = format!(
                    "revision {} follows {revision} at byte {offset}",
                    frame.stamp.revision
                );
                return Err(self.damaged(file, what));
            }

            *revision = frame.stamp.revision;
            self.marks
                .note(Duration::from_millis(frame.stamp.time), *revision);
        }

        if !writes.is_empty() {
            self.index.apply(*revision, writes);
        }

        Ok(())
    }

    fn replay_record(
        &mut self,
        record: &Record<'_>,
        revision: Revision,
        at: Position,
        writes: &mut Vec<Write>,
    ) {
        let (key, live) = match *record {
            Record::Put {
                key,
                value,
                create,
                version,
                lease,
            } => {
                let value = Bytes::copy_from_slice(value);
                (
                    key,
                    Some(Live {
                        value,
                        create,
                        modified: revision,
                        version,
                        lease,
                        at,
                    }),
                )
            }
            Record::Delete { key } => (key, None),
            Record::GrantLease { id, ttl } => {
                self.granted.insert(id, ttl);
                return;
            }
            Record::EndLease { id } => {
                self.granted.remove(&id);
                return;
            }
            Record::Compact { revision } => {
                self.compacted = self.compacted.max(revision);
                return;
            }
            Record::End { .. } => return,
        };
        let part = self.manifest.part_of(key);

        // The key's part was written after this revision and contains the change.
        if revision > self.manifest.parts[part].base {
            self.changed[part] = revision;
            writes.push(Write {
                key: Bytes::copy_from_slice(key),
                live,
            });
        }
    }

    /// A store cannot have compacted what it has not reached: every read would wait for a revision that does not come.
    fn check_compaction(&self) -> Result<(), OpenError> {
        let (compacted, revision) = (self.manifest.compacted, self.index.revision());
        if compacted <= revision {
            return Ok(());
        }
        Err(OpenError::Corrupt {
            path: self.path.clone(),
            file: MANIFEST.to_owned(),
            what: format!("compacted to revision {compacted}, the newest is {revision}"),
        })
    }

    fn finish(
        mut self,
        names: Vec<String>,
        segments: VecDeque<Segment>,
        config: &Config,
    ) -> Recovered {
        let compacted = self.compacted.min(self.index.revision());
        self.index.compact(compacted);
        while self.index.trim(compacted.previous(), usize::MAX) {}
        self.marks.trim(compacted);
        self.index.keep_recent(config.recent_bytes);

        for (id, ttl) in &self.granted {
            self.leases.grant(*id, *ttl, self.now);
        }

        let keys = crate::KeyRange::all();
        for (key, live) in self.index.live_range(&keys) {
            if let Some(id) = live.lease {
                self.leases.attach(id, key);
            }
        }

        let needed: BTreeSet<FileId> = self
            .manifest
            .parts
            .iter()
            .filter_map(|part| part.file)
            .collect();

        let highest = names.iter().filter_map(|name| layout::file_id(name)).max();
        let next_file = highest
            .max(Some(self.manifest.first_segment))
            .map_or(1, |id| id.0 + 1);
        let kept = |name: &String| match layout::file_id(name) {
            Some(id) => needed.contains(&id) || segments.iter().any(|segment| segment.id == id),
            None => name != NEW_MANIFEST && name != NEW_TAIL,
        };
        let unreferenced = names.into_iter().filter(|name| !kept(name)).collect();

        let store = self.manifest.store;
        Recovered {
            log: Log::new(
                self.files.clone(),
                store,
                segments,
                next_file,
                config.segment_bytes,
            ),
            manifest: self.manifest,
            changed: self.changed,
            index: self.index,
            leases: self.leases,
            marks: self.marks,
            unreferenced,
            torn_bytes: self.torn_bytes,
        }
    }
}

/// Enough of a segment to contain its header.
fn read_beginning(file: &dyn File) -> std::io::Result<Vec<u8>> {
    const BEGINNING: u64 = 256;
    let size = usize::try_from(file.size()?.min(BEGINNING)).unwrap_or_default();
    let mut bytes = vec![0; size];
    file.read_at(0, &mut bytes)?;
    Ok(bytes)
}

fn header_error(path: &str, file: &str, fault: HeaderFault) -> OpenError {
    match fault {
        HeaderFault::Newer(format) => OpenError::Newer {
            path: path.to_owned(),
            format,
        },
        _ => OpenError::Corrupt {
            path: path.to_owned(),
            file: file.to_owned(),
            what: fault.to_string(),
        },
    }
}
