//! The log: segments that are appended to and synced, oldest first.
//!
//! After a write or a sync failed, nobody knows what is on the disk: the segment is left as it is, and the next
//! write begins a new one whose header tells how much of the old one counts. So a failing, full or read-only disk
//! costs nothing but the writes it refused, and the log goes on by itself once the disk does.

use super::files::{File, Files};
use super::frame::{FileId, FrameBuffer};
use super::layout::{SegmentHeader, segment_name};
use crate::Revision;
use std::{collections::VecDeque, io, sync::Arc};

pub(crate) struct Log {
    files: Arc<dyn Files>,
    store: u64,
    segments: VecDeque<Segment>,
    /// The file of the last segment, while it takes writes.
    open: Option<Arc<dyn File>>,
    next_file: u32,
    segment_bytes: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) id: FileId,
    /// How much of it counts.
    pub(crate) bytes: u32,
    /// The newest revision in it.
    pub(crate) last: Revision,
}

/// A segment that was just begun.
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
        Log { files, store, segments, open: None, next_file, segment_bytes }
    }

    /// Begins a new segment if the last one is full or was given up.
    pub(crate) fn make_room(&mut self, revision: Revision) -> io::Result<Option<Begun>> {
        let full = self.segments.back().is_some_and(|last| u64::from(last.bytes) >= self.segment_bytes);
        if self.open.is_some() && !full {
            return Ok(None);
        }
        self.begin(revision).map(Some)
    }

    /// A buffer for the next batch; room must have been made.
    pub(crate) fn buffer(&self) -> FrameBuffer {
        let (id, bytes) = self.segments.back().map_or_else(Default::default, |last| (last.id, last.bytes));
        FrameBuffer::new(id, bytes)
    }

    /// Writes a batch and makes it durable. After an error none of it will ever count.
    pub(crate) fn append(&mut self, batch: &FrameBuffer, last: Revision) -> io::Result<()> {
        let file = self.open.clone().ok_or_else(|| io::Error::other("the log has no room"))?;
        let written = file.write_at(batch.start().into(), batch.bytes()).and_then(|()| file.sync());
        if written.is_err() {
            self.open = None;
        } else if let Some(segment) = self.segments.back_mut() {
            segment.bytes = batch.end();
            segment.last = last;
        }
        written
    }

    /// A number for a new file.
    pub(crate) fn take_file_id(&mut self) -> FileId {
        let id = FileId(self.next_file);
        self.next_file += 1;
        id
    }

    /// The first segment that holds something after `revision`; the last one in any case. `None`: no segment yet.
    pub(crate) fn first_after(&self, revision: Revision) -> Option<FileId> {
        let needed = self.segments.iter().find(|segment| segment.last > revision);
        needed.or(self.segments.back()).map(|segment| segment.id)
    }

    /// How many segments hold nothing after `revision`.
    pub(crate) fn settled(&self, revision: Revision) -> usize {
        let settled = self.segments.iter().take_while(|segment| segment.last <= revision).count();
        settled.min(self.segments.len().saturating_sub(1))
    }

    /// Takes the segments before `first` off the log; their files can go.
    pub(crate) fn drop_before(&mut self, first: FileId) -> Vec<FileId> {
        let count = self.segments.iter().take_while(|segment| segment.id < first).count();
        self.segments.drain(..count).map(|segment| segment.id).collect()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| u64::from(segment.bytes)).sum()
    }

    /// The bytes of segments that hold something after `revision`.
    pub(crate) fn bytes_after(&self, revision: Revision) -> u64 {
        let needed = self.segments.iter().filter(|segment| segment.last > revision);
        needed.map(|segment| u64::from(segment.bytes)).sum()
    }

    fn begin(&mut self, revision: Revision) -> io::Result<Begun> {
        self.open = None;
        let id = self.take_file_id();
        let name = segment_name(id);
        let file = self.files.create(&name)?;
        let mut buffer = FrameBuffer::new(id, 0);
        let previous = self.segments.back().map(|last| (last.id, last.bytes));
        SegmentHeader { store: self.store, previous, revision }.append(&mut buffer);
        let begun = file
            .write_at(0, buffer.bytes())
            .and_then(|()| file.sync())
            .and_then(|()| self.files.sync_directory());
        if let Err(error) = begun {
            // If this fails too, the next start removes it: no other segment will name it.
            self.files.remove(&name).ok();
            return Err(error);
        }
        self.segments.push_back(Segment { id, bytes: buffer.end(), last: revision });
        self.open = Some(file.clone());
        Ok(Begun { id, file })
    }
}
