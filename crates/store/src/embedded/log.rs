//! The log: segments that are appended to and synced, oldest first.
//!
//! After a failed write or sync, the contents of the disk are unknown: the segment is left as it
//! is, and the next write starts a new one whose header says how much of the old one is valid. So a
//! failing, full or read-only disk costs only the writes that failed, and the log continues by
//! itself once the disk works again.
//!
//! The open segment is preallocated: zeros follow what was written, so that the next batches only
//! change bytes that the file has already. A sync after which a file is longer also waits for the
//! file system's journal, which takes several times as long; with preallocation only one in many
//! syncs does.

use super::files::{File, Files};
use super::frame::{FileId, FrameBuffer};
use super::layout::{SegmentHeader, segment_name};
use crate::Revision;
use std::{collections::VecDeque, io, sync::Arc};

pub(crate) struct Log {
    files: Arc<dyn Files>,
    store: u64,
    segments: VecDeque<Segment>,
    /// The file of the last segment, while it is open for writing.
    open: Option<Open>,
    next_file: u32,
    segment_bytes: u64,
}

/// The segment that is open for writing.
#[derive(Clone)]
struct Open {
    file: Arc<dyn File>,
    /// The length of the file: what was written and the preallocated zeros.
    len: u64,
}

/// The preallocation as a fraction of a segment.
const PREALLOCATION: u64 = 32;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) id: FileId,
    /// How much of it is valid.
    pub(crate) bytes: u32,
    /// The newest revision in it.
    pub(crate) last: Revision,
}

/// A new segment.
pub(crate) struct Begun {
    pub(crate) id: FileId,
    pub(crate) file: Arc<dyn File>,
}

impl Log {
    pub(crate) fn new(
        files: Arc<dyn Files>,
        store: u64,
        segments: VecDeque<Segment>,
        next_file: u32,
        segment_bytes: u64,
    ) -> Self {
        Log {
            files,
            store,
            segments,
            open: None,
            next_file,
            segment_bytes,
        }
    }

    /// Starts a new segment if the last one is full or was abandoned.
    pub(crate) fn prepare(&mut self, revision: Revision) -> io::Result<Option<Begun>> {
        let full = self
            .segments
            .back()
            .is_some_and(|last| u64::from(last.bytes) >= self.segment_bytes);
        if self.open.is_some() && !full {
            return Ok(None);
        }
        self.begin(revision).map(Some)
    }

    /// A buffer for the next batch; `prepare` must have been called.
    pub(crate) fn buffer(&self) -> FrameBuffer {
        let (id, bytes) = self
            .segments
            .back()
            .map_or_else(Default::default, |last| (last.id, last.bytes));
        FrameBuffer::new(id, bytes)
    }

    /// Writes a batch and makes it durable. After an error none of it is ever valid.
    pub(crate) fn append(&mut self, batch: &FrameBuffer, last: Revision) -> io::Result<()> {
        let mut open = self
            .open
            .take()
            .ok_or_else(|| io::Error::other("the log has no open segment"))?;
        open.write(batch, self.segment_bytes / PREALLOCATION)?;
        self.open = Some(open);
        if let Some(segment) = self.segments.back_mut() {
            segment.bytes = batch.end();
            segment.last = last;
        }
        Ok(())
    }

    /// A number for a new file.
    pub(crate) fn take_file_id(&mut self) -> FileId {
        let id = FileId(self.next_file);
        self.next_file += 1;
        id
    }

    /// The first segment with changes after `revision`, or else the last one. `None`: no segment
    /// yet.
    pub(crate) fn first_after(&self, revision: Revision) -> Option<FileId> {
        let needed = self.segments.iter().find(|segment| segment.last > revision);
        needed.or(self.segments.back()).map(|segment| segment.id)
    }

    /// How many segments have no changes after `revision`.
    pub(crate) fn settled(&self, revision: Revision) -> usize {
        let settled = self
            .segments
            .iter()
            .take_while(|segment| segment.last <= revision)
            .count();
        settled.min(self.segments.len().saturating_sub(1))
    }

    /// Removes the segments before `first` from the log; their files can be deleted.
    pub(crate) fn drop_before(&mut self, first: FileId) -> Vec<FileId> {
        let count = self
            .segments
            .iter()
            .take_while(|segment| segment.id < first)
            .count();
        self.segments
            .drain(..count)
            .map(|segment| segment.id)
            .collect()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.segments
            .iter()
            .map(|segment| u64::from(segment.bytes))
            .sum()
    }

    /// The bytes of segments with changes after `revision`.
    pub(crate) fn bytes_after(&self, revision: Revision) -> u64 {
        let needed = self
            .segments
            .iter()
            .filter(|segment| segment.last > revision);
        needed.map(|segment| u64::from(segment.bytes)).sum()
    }

    fn begin(&mut self, revision: Revision) -> io::Result<Begun> {
        self.open = None;
        let id = self.take_file_id();
        let name = segment_name(id);
        let file = self.files.create(&name)?;
        let mut buffer = FrameBuffer::new(id, 0);

        let previous = self.segments.back().map(|last| (last.id, last.bytes));
        SegmentHeader {
            store: self.store,
            previous,
            revision,
        }
        .append(&mut buffer);

        let mut open = Open {
            file: file.clone(),
            len: 0,
        };

        let begun = open
            .write(&buffer, self.segment_bytes / PREALLOCATION)
            .and_then(|()| self.files.sync_directory());
        if let Err(error) = begun {
            // If this fails too, the next start removes it: no other segment will name it.
            self.files.remove(&name).ok();
            return Err(error);
        }

        self.segments.push_back(Segment {
            id,
            bytes: buffer.end(),
            last: revision,
        });

        self.open = Some(open);

        Ok(Begun { id, file })
    }
}

impl Open {
    /// Writes a batch and makes it durable, extending the preallocation if it reaches the end of
    /// the file.
    fn write(&mut self, batch: &FrameBuffer, preallocation: u64) -> io::Result<()> {
        self.file.write_at(batch.start().into(), batch.bytes())?;
        let end = u64::from(batch.end());
        if end > self.len {
            let zeros = vec![0; usize::try_from(preallocation).unwrap_or_default()];
            // If the disk has no space for a preallocation, continue without one.
            self.len = self
                .file
                .write_at(end, &zeros)
                .map_or(end, |()| end + preallocation);
        }
        self.file.sync()
    }
}
