//! Frames: the building block of every file of the engine.
//!
//! A frame is a header and a payload of records. Its checksum covers the file's number and the
//! frame's offset, so that neither stale blocks nor a copy inside a value are mistaken for a frame.
//! It also contains the offset at which its batch began: everything before that was durable when
//! the frame was written, which is how a damaged log is distinguished from one whose last write was
//! torn.

use crate::Revision;
use bytes::{Buf, BufMut};

/// The number of a file, never reused within a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FileId(pub(crate) u32);

/// The position of a record: file, offset of the frame, and index within the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) file: FileId,
    pub(crate) offset: u32,
    pub(crate) len: u32,
    pub(crate) record: u32,
}

impl Position {
    /// The position of a value that is not yet written.
    pub(crate) const UNKNOWN: Position = Position {
        file: FileId(0),
        offset: 0,
        len: 0,
        record: 0,
    };
}

/// The fields of a frame's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) revision: Revision,
    /// Milliseconds since the Unix epoch.
    pub(crate) time: u64,
    /// Where in the file the frame's batch began.
    pub(crate) batch: u32,
}

/// A frame found in a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    pub(crate) stamp: Stamp,
    pub(crate) payload: &'a [u8],
    /// Header and payload.
    pub(crate) len: u32,
}

/// Frames to be written to a file.
pub(crate) struct FrameBuffer {
    file: FileId,
    /// The offset in the file at which the buffer will be written.
    start: u32,
    bytes: Vec<u8>,
}

pub(crate) const HEADER: usize = 4 + 4 + 8 + 8 + 4;

impl FrameBuffer {
    pub(crate) fn new(file: FileId, start: u32) -> Self {
        FrameBuffer {
            file,
            start,
            bytes: Vec::new(),
        }
    }

    /// Adds a frame whose payload is what `fill` appends. Returns the position of its first record.
    pub(crate) fn push(&mut self, stamp: Stamp, fill: impl FnOnce(&mut Vec<u8>)) -> Position {
        let begin = self.bytes.len();
        let offset = self.start + size(begin);
        self.bytes.put_bytes(0, 8);
        self.bytes.put_u64_le(stamp.revision.get());
        self.bytes.put_u64_le(stamp.time);
        self.bytes.put_u32_le(stamp.batch);

        fill(&mut self.bytes);
        let frame = &mut self.bytes[begin..];
        let len = size(frame.len());
        let sum = checksum(self.file, offset, &frame[8..]);
        frame[..4].copy_from_slice(&len.to_le_bytes());
        frame[4..8].copy_from_slice(&sum.to_le_bytes());

        Position {
            file: self.file,
            offset,
            len,
            record: 0,
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn start(&self) -> u32 {
        self.start
    }

    /// The offset in the file of the next frame.
    pub(crate) fn end(&self) -> u32 {
        self.start + size(self.bytes.len())
    }

    /// Continues after what was written.
    pub(crate) fn advance(&mut self) {
        self.start = self.end();
        self.bytes.clear();
    }
}

/// The frame at `offset` of `file`, whose bytes from there on are `rest`. `None`: there is no
/// complete and valid one.
pub(crate) fn parse(file: FileId, offset: u32, rest: &[u8]) -> Option<Frame<'_>> {
    let mut header = rest.get(..HEADER)?;
    let len = header.get_u32_le();
    let sum = header.get_u32_le();
    let frame = rest.get(..usize::try_from(len).ok()?)?;
    let payload = frame.get(HEADER..)?;

    if checksum(file, offset, &frame[8..]) != sum {
        return None;
    }

    let revision = Revision::new(header.get_u64_le());
    let stamp = Stamp {
        revision,
        time: header.get_u64_le(),
        batch: header.get_u32_le(),
    };

    Some(Frame {
        stamp,
        payload,
        len,
    })
}

/// Whether a valid frame after `offset` was written when the bytes at `offset` were durable
/// already. Then the disk lost or changed data that it had confirmed.
pub(crate) fn proves_damage(file: FileId, offset: u32, bytes: &[u8]) -> bool {
    let from = offset as usize + 1;
    (from..written(bytes).saturating_sub(HEADER)).any(|at| {
        // A cheap test first: checksums at every byte would take minutes.
        let batch = (&bytes[at + HEADER - 4..]).get_u32_le();
        batch > offset && batch <= size(at) && parse(file, size(at), &bytes[at..]).is_some()
    })
}

/// How much of a file was ever written; after that come the zeros of its preallocation. A complete
/// frame may end with zeros: this is only for incomplete ones.
pub(crate) fn written(bytes: &[u8]) -> usize {
    const BLOCK: [u8; 4096] = [0; 4096];
    let mut len = bytes.len();
    while len >= BLOCK.len() && bytes[len - BLOCK.len()..len] == BLOCK {
        len -= BLOCK.len();
    }
    bytes[..len]
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |last| last + 1)
}

fn checksum(file: FileId, offset: u32, bytes: &[u8]) -> u32 {
    let mut seed = [0; 8];
    seed[..4].copy_from_slice(&file.0.to_le_bytes());
    seed[4..].copy_from_slice(&offset.to_le_bytes());
    crc32c::crc32c_append(crc32c::crc32c(&seed), bytes)
}

/// A length within a file. Files are closed long before they reach 4 GiB: segment and request sizes
/// are bounded.
pub(crate) fn size(len: usize) -> u32 {
    u32::try_from(len).expect("files stay far below 4 GiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(revision: u64, batch: u32) -> Stamp {
        Stamp {
            revision: Revision::new(revision),
            time: 7,
            batch,
        }
    }

    #[test]
    fn a_frame_is_read_back_only_where_it_was_written() {
        let mut buffer = FrameBuffer::new(FileId(3), 0);
        buffer.push(stamp(1, 0), |out| out.extend(b"first"));

        let second = buffer.push(stamp(2, 0), |out| out.extend(b"second"));
        let bytes = buffer.bytes();
        let rest = &bytes[second.offset as usize..];
        let frame = parse(FileId(3), second.offset, rest).unwrap();
        assert_eq!(
            (frame.payload, frame.stamp, frame.len),
            (&b"second"[..], stamp(2, 0), second.len)
        );

        assert!(
            parse(FileId(4), second.offset, rest).is_none(),
            "another file"
        );

        assert!(parse(FileId(3), 0, rest).is_none(), "another offset");
        assert!(
            parse(FileId(3), second.offset, &rest[..rest.len() - 1]).is_none(),
            "torn"
        );

        assert!(parse(FileId(3), 0, &[0; 64]).is_none(), "zeros");
    }

    #[test]
    fn a_hole_is_damage_only_if_a_later_batch_followed_it() {
        let mut buffer = FrameBuffer::new(FileId(1), 0);
        let first = buffer.push(stamp(1, 0), |out| out.extend(b"one"));
        let second = buffer.push(stamp(2, 0), |out| out.extend(b"two"));
        let mut bytes = buffer.bytes().to_vec();
        bytes[first.len as usize - 1] ^= 1;
        assert!(
            !proves_damage(FileId(1), first.offset, &bytes),
            "both were of one batch"
        );

        buffer.push(stamp(3, second.offset), |out| out.extend(b"three"));
        let mut bytes = buffer.bytes().to_vec();
        bytes[first.len as usize - 1] ^= 1;
        assert!(proves_damage(FileId(1), first.offset, &bytes));
    }
}
