//! The files of the store's directory: `MANIFEST`, settled data in `*.part` files, the log after it
//! in `*.log` segments.
//!
//! The manifest names the parts and the first segment; it is replaced as a whole. Parts divide the
//! key space: each covers the keys from its start to the next one's, as of its base revision. The
//! log contains everything since; for a key it is applied from the base of the key's part on.

use super::frame::{self, FileId, FrameBuffer, Stamp};
use super::record::{get_bytes, milliseconds, put_bytes};
use crate::{LeaseId, Revision};
use bytes::{Buf, BufMut, Bytes};
use std::time::Duration;

pub(crate) const MANIFEST: &str = "MANIFEST";
pub(crate) const NEW_MANIFEST: &str = "MANIFEST.new";
/// The file number of the manifest and of backups in checksums; no other file has it.
const NO_FILE: FileId = FileId(0);
const FORMAT: u8 = 1;
const MAGIC: &[u8] = b"coracle store";

/// The list of the store's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// Distinguishes this store's files from another's.
    pub(crate) store: u64,
    /// The revision of a store without a log.
    pub(crate) revision: Revision,
    /// The oldest revision that is not compacted.
    pub(crate) compacted: Revision,
    /// Segments with lower numbers are no longer needed.
    pub(crate) first_segment: FileId,
    /// Sorted by start; the first starts with the empty key.
    pub(crate) parts: Vec<Part>,
    /// The leases when the manifest was written; the log may end some and add others.
    pub(crate) leases: Vec<(LeaseId, Duration)>,
}

/// Settled data of a range of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) start: Bytes,
    /// `None`: there was no key in the range.
    pub(crate) file: Option<FileId>,
    pub(crate) base: Revision,
    pub(crate) bytes: u64,
}

/// A segment's first frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) store: u64,
    /// The previous segment, and how much of it is valid: what follows there is an incomplete
    /// write.
    pub(crate) previous: Option<(FileId, u32)>,
    /// The store's revision when the segment was created.
    pub(crate) revision: Revision,
}

/// The first frame of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BackupHeader {
    pub(crate) store: u64,
    pub(crate) revision: Revision,
}

/// The kind of file, in its first frame.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Manifest = 1,
    Segment = 2,
    Part = 3,
    Backup = 4,
}

/// Why the first frame of a file is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HeaderFault {
    #[error("its header is damaged or missing")]
    Damaged,
    #[error("it was written by a newer version (format {0})")]
    Newer(u8),
    #[error("its contents do not match its file name")]
    Foreign,
}

pub(crate) fn segment_name(id: FileId) -> String {
    format!("{:08}.log", id.0)
}

pub(crate) fn part_name(id: FileId) -> String {
    format!("{:08}.part", id.0)
}

/// The number of a segment or part, from its name.
pub(crate) fn file_id(name: &str) -> Option<FileId> {
    let number = name
        .strip_suffix(".log")
        .or_else(|| name.strip_suffix(".part"))?;
    number.parse().ok().map(FileId)
}

impl Manifest {
    /// A store without any write.
    pub(crate) fn fresh(store: u64) -> Self {
        let part = Part {
            start: Bytes::new(),
            file: None,
            base: Revision::FIRST,
            bytes: 0,
        };

        Manifest {
            store,
            revision: Revision::FIRST,
            compacted: Revision::ZERO,
            first_segment: FileId(1),
            parts: vec![part],
            leases: Vec::new(),
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut buffer = FrameBuffer::new(NO_FILE, 0);
        buffer.push(stamp(self.revision), |out| {
            put_kind(out, Kind::Manifest);
            out.put_u64_le(self.store);
            out.put_u64_le(self.revision.get());
            out.put_u64_le(self.compacted.get());
            out.put_u32_le(self.first_segment.0);
            out.put_u32_le(frame::size(self.parts.len()));

            for part in &self.parts {
                put_bytes(out, &part.start);
                out.put_u32_le(part.file.map_or(0, |file| file.0));
                out.put_u64_le(part.base.get());
                out.put_u64_le(part.bytes);
            }

            out.put_u32_le(frame::size(self.leases.len()));

            for (id, ttl) in &self.leases {
                out.put_i64_le(id.to_wire());
                out.put_u64_le(milliseconds(*ttl));
            }
        });

        buffer.bytes().to_vec()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, HeaderFault> {
        let frame = frame::parse(NO_FILE, 0, bytes).ok_or(HeaderFault::Damaged)?;
        let mut from = frame.payload;
        get_kind(&mut from, Kind::Manifest)?;
        Self::fields(&mut from).ok_or(HeaderFault::Damaged)
    }

    fn fields(from: &mut &[u8]) -> Option<Self> {
        let store = from.try_get_u64_le().ok()?;
        let revision = get_revision(from)?;
        let compacted = get_revision(from)?;
        let first_segment = FileId(from.try_get_u32_le().ok()?);

        let mut parts = Vec::new();
        for _ in 0..from.try_get_u32_le().ok()? {
            let start = Bytes::copy_from_slice(get_bytes(from)?);
            let file = Some(from.try_get_u32_le().ok()?)
                .filter(|id| *id != 0)
                .map(FileId);
            parts.push(Part {
                start,
                file,
                base: get_revision(from)?,
                bytes: from.try_get_u64_le().ok()?,
            });
        }

        let mut leases = Vec::new();
        for _ in 0..from.try_get_u32_le().ok()? {
            let id = LeaseId::from_wire(from.try_get_i64_le().ok()?)?;
            leases.push((id, Duration::from_millis(from.try_get_u64_le().ok()?)));
        }

        // Every key belongs to a part.
        let is_divided = parts.first().is_some_and(|first| first.start.is_empty())
            && parts.is_sorted_by(|one, next| one.start < next.start);

        is_divided.then_some(Manifest {
            store,
            revision,
            compacted,
            first_segment,
            parts,
            leases,
        })
    }

    /// Which part a key belongs to.
    pub(crate) fn part_of(&self, key: &[u8]) -> usize {
        self.parts
            .partition_point(|part| &part.start[..] <= key)
            .saturating_sub(1)
    }
}

impl SegmentHeader {
    pub(crate) fn append(&self, buffer: &mut FrameBuffer) {
        let (file, len) = self.previous.unwrap_or_default();
        buffer.push(stamp(self.revision), |out| {
            put_kind(out, Kind::Segment);
            out.put_u64_le(self.store);
            out.put_u32_le(file.0);
            out.put_u32_le(len);
            out.put_u64_le(self.revision.get());
        });
    }

    /// The header, and the offset of the first frame after it.
    pub(crate) fn parse(file: FileId, bytes: &[u8]) -> Result<(Self, u32), HeaderFault> {
        let frame = frame::parse(file, 0, bytes).ok_or(HeaderFault::Damaged)?;
        let mut from = frame.payload;
        get_kind(&mut from, Kind::Segment)?;
        let header = Self::fields(&mut from).ok_or(HeaderFault::Damaged)?;
        Ok((header, frame.len))
    }

    fn fields(from: &mut &[u8]) -> Option<Self> {
        let store = from.try_get_u64_le().ok()?;
        let previous = (
            FileId(from.try_get_u32_le().ok()?),
            from.try_get_u32_le().ok()?,
        );
        let previous = Some(previous).filter(|(file, _)| file.0 != 0);
        Some(SegmentHeader {
            store,
            previous,
            revision: get_revision(from)?,
        })
    }
}

/// Writes the header of a part.
pub(crate) fn begin_part(buffer: &mut FrameBuffer, store: u64, base: Revision) {
    buffer.push(stamp(base), |out| {
        put_kind(out, Kind::Part);
        out.put_u64_le(store);
    });
}

/// Checks a part's header and returns the offset of its first key.
pub(crate) fn parse_part(file: FileId, store: u64, bytes: &[u8]) -> Result<u32, HeaderFault> {
    let frame = frame::parse(file, 0, bytes).ok_or(HeaderFault::Damaged)?;
    let mut from = frame.payload;
    get_kind(&mut from, Kind::Part)?;
    let found = from.try_get_u64_le().map_err(|_| HeaderFault::Damaged)?;
    if found == store {
        Ok(frame.len)
    } else {
        Err(HeaderFault::Foreign)
    }
}

impl BackupHeader {
    /// The file number in the checksums of a backup.
    pub(crate) const FILE: FileId = NO_FILE;

    pub(crate) fn append(&self, buffer: &mut FrameBuffer) {
        buffer.push(stamp(self.revision), |out| {
            put_kind(out, Kind::Backup);
            out.put_u64_le(self.store);
        });
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<(Self, u32), HeaderFault> {
        let frame = frame::parse(NO_FILE, 0, bytes).ok_or(HeaderFault::Damaged)?;
        let mut from = frame.payload;
        get_kind(&mut from, Kind::Backup)?;
        let store = from.try_get_u64_le().map_err(|_| HeaderFault::Damaged)?;
        Ok((
            BackupHeader {
                store,
                revision: frame.stamp.revision,
            },
            frame.len,
        ))
    }
}

/// A manifest of any content, with a valid checksum.
#[cfg(feature = "testing")]
pub(crate) fn forged_manifest(content: &[u8]) -> Vec<u8> {
    let mut buffer = FrameBuffer::new(NO_FILE, 0);
    buffer.push(stamp(Revision::FIRST), |out| {
        put_kind(out, Kind::Manifest);
        out.put_slice(content);
    });
    buffer.bytes().to_vec()
}

fn put_kind(out: &mut Vec<u8>, kind: Kind) {
    out.extend_from_slice(MAGIC);
    out.put_u8(FORMAT);
    out.put_u8(kind as u8);
}

fn get_kind(from: &mut &[u8], kind: Kind) -> Result<(), HeaderFault> {
    *from = from.strip_prefix(MAGIC).ok_or(HeaderFault::Foreign)?;
    match from.try_get_u8().map_err(|_| HeaderFault::Damaged)? {
        FORMAT => {}
        other => return Err(HeaderFault::Newer(other)),
    }
    let found = from.try_get_u8().map_err(|_| HeaderFault::Damaged)?;
    if found == kind as u8 {
        Ok(())
    } else {
        Err(HeaderFault::Foreign)
    }
}

fn get_revision(from: &mut &[u8]) -> Option<Revision> {
    from.try_get_u64_le().ok().map(Revision::new)
}

fn stamp(revision: Revision) -> Stamp {
    Stamp {
        revision,
        time: 0,
        batch: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_read_back_as_written() {
        let mut manifest = Manifest::fresh(42);
        manifest.compacted = Revision::new(7);
        manifest.leases = vec![(LeaseId::from_wire(5).unwrap(), Duration::from_secs(60))];

        let start = Bytes::from_static(b"/m");
        manifest.parts.push(Part {
            start,
            file: Some(FileId(9)),
            base: Revision::new(6),
            bytes: 100,
        });

        let bytes = manifest.encode();
        assert_eq!(Manifest::decode(&bytes), Ok(manifest.clone()));

        assert_eq!(Manifest::decode(&bytes[1..]), Err(HeaderFault::Damaged));
        assert_eq!(
            [
                manifest.part_of(b"/a"),
                manifest.part_of(b"/m"),
                manifest.part_of(b"/z")
            ],
            [0, 1, 1]
        );
    }

    #[test]
    fn a_manifest_that_leaves_keys_without_a_part_is_damaged() {
        let mut manifest = Manifest::fresh(42);
        manifest.parts.clear();
        assert_eq!(
            Manifest::decode(&manifest.encode()),
            Err(HeaderFault::Damaged)
        );
    }

    #[test]
    fn a_segment_is_not_taken_for_a_part() {
        let mut buffer = FrameBuffer::new(FileId(2), 0);
        SegmentHeader {
            store: 1,
            previous: None,
            revision: Revision::FIRST,
        }
        .append(&mut buffer);

        assert!(SegmentHeader::parse(FileId(2), buffer.bytes()).is_ok());
        assert_eq!(
            parse_part(FileId(2), 1, buffer.bytes()),
            Err(HeaderFault::Foreign)
        );
    }
}
