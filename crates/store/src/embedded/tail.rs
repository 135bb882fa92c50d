//! Makes the end of the log durable before it is read.
//!
//! The last batch may be readable and yet not durable: the process was killed before its sync, or
//! the sync failed, after which the kernel shows the bytes but never writes them. It must neither
//! be shown to readers nor be dropped, because it may have been acknowledged. So it is written
//! again, into a new segment; the same holds for the header of a segment that contains nothing
//! else.

use super::files::{Files, read_all};
use super::frame::{self, FileId, FrameBuffer, Stamp};
use super::layout::{Manifest, SegmentHeader, file_id, segment_name};
use std::io;

pub(crate) const NEW_TAIL: &str = "TAIL.new";

/// Writes the last batch again. Does nothing if the log is empty or looks damaged: recovery reports
/// that.
pub(crate) fn make_durable(files: &dyn Files, manifest: &Manifest) -> io::Result<()> {
    let names = files.list()?;
    let logs = names
        .iter()
        .filter(|name| name.ends_with(".log"))
        .filter_map(|name| file_id(name));
    let mut ids: Vec<FileId> = logs.filter(|id| *id >= manifest.first_segment).collect();
    ids.sort_unstable();

    let Some(next) = names
        .iter()
        .filter_map(|name| file_id(name))
        .max()
        .map(|id| FileId(id.0 + 1))
    else {
        return Ok(());
    };

    for id in ids.into_iter().rev() {
        let bytes = read_all(&*files.open(&segment_name(id))?)?;

        // A segment with an incomplete header contains no write: the one before it is the last.
        let Ok((header, first)) = SegmentHeader::parse(id, &bytes) else {
            continue;
        };
        if header.store != manifest.store {
            return Ok(());
        }

        let (start, end) = last_batch(id, first, &bytes);
        return rewrite(files, id, &bytes, (start, end), next, header);
    }

    Ok(())
}

/// The start and end of the last batch.
fn last_batch(id: FileId, first: u32, bytes: &[u8]) -> (u32, u32) {
    let (mut start, mut end) = (first, first);
    while let Some(frame) = bytes
        .get(end as usize..)
        .and_then(|rest| frame::parse(id, end, rest))
    {
        start = frame.stamp.batch;
        end += frame.len;
    }
    (start, end)
}

fn rewrite(
    files: &dyn Files,
    id: FileId,
    bytes: &[u8],
    (start, end): (u32, u32),
    next: FileId,
    header: SegmentHeader,
) -> io::Result<()> {
    if frame::proves_damage(id, end, bytes) {
        return Ok(());
    }

    let mut buffer = FrameBuffer::new(next, 0);
    let revision = revision_at(id, bytes, start, header);

    // The header of an empty segment may not be durable either: the new segment replaces it.
    let previous = if start == end {
        header.previous
    } else {
        Some((id, start))
    };

    SegmentHeader {
        store: header.store,
        previous,
        revision,
    }
    .append(&mut buffer);

    let batch = buffer.end();
    let mut offset = start;
    while offset < end {
        let Some(frame) = frame::parse(id, offset, &bytes[offset as usize..]) else {
            break;
        };
        buffer.push(
            Stamp {
                batch,
                ..frame.stamp
            },
            |out| out.extend_from_slice(frame.payload),
        );

        offset += frame.len;
    }

    // Renamed only once it is complete: a partial copy must not be mistaken for the end of the log.
    let file = files.create(NEW_TAIL)?;
    file.write_at(0, buffer.bytes())?;
    file.sync()?;
    files.rename(NEW_TAIL, &segment_name(next))?;

    files.sync_directory()
}

/// The store's revision before the frame at `until`.
fn revision_at(id: FileId, bytes: &[u8], until: u32, header: SegmentHeader) -> crate::Revision {
    let mut revision = header.revision;
    let mut offset = 0;
    while offset < until {
        let Some(frame) = frame::parse(id, offset, &bytes[offset as usize..]) else {
            break;
        };
        revision = frame.stamp.revision.max(revision);
        offset += frame.len;
    }
    revision
}
