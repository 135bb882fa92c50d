//! Properties of recovery for any content of the disk: the target of `fuzz/` panics on a violation.
//!
//! An input is a list of instructions that build the files of a store: with valid checksums, because random bytes never
//! have one, and with damage.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::files::{Files as _, SimulatedDisk};
use super::frame::{FileId, FrameBuffer, Stamp};
use super::layout::{MANIFEST, Manifest, SegmentHeader, segment_name};
use super::record::Record;
use super::{Clock, Config, Embedded, OpenError};
use crate::{KeyRange, LeaseId, RangeRequest, Revision, Store as _};

/// What a store contains: keys and values.
type Content = BTreeMap<Vec<u8>, Vec<u8>>;

/// A store opens, or says what is wrong with it. What it shows was written, in the order in which it was written; all of it,
/// if nothing was damaged. Opening it again shows the same.
pub fn recovery(data: &[u8]) {
    let log = Log::build(data);
    let disk = SimulatedDisk::default();
    write(&disk, MANIFEST, &log.manifest);
    for (id, bytes) in &log.segments {
        write(&disk, &segment_name(*id), bytes);
    }

    let (revision, content) = match open(&disk) {
        Ok(shown) => shown,
        Err(error) => {
            assert!(log.is_damaged, "{error}");
            return;
        }
    };
    if !log.is_forged {
        assert_eq!(Some(&content), log.history.get(&revision), "{revision}");
        let newest = log.history.last_key_value().map(|(revision, _)| *revision);
        assert!(log.is_damaged || newest == Some(revision));
    }

    let again = open(&disk).expect("a store that was opened can be opened again");
    assert_eq!(again, (revision, content));
}

/// The revision and content that a process sees, which is killed then.
fn open(disk: &SimulatedDisk) -> Result<(Revision, Content), OpenError> {
    disk.kill_process();
    let (store, _driver) =
        Embedded::open_driven(Config::default(), Arc::new(disk.files()), Arc::new(Stopped))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime without I/O can be built");
    let answer = runtime
        .block_on(store.range(RangeRequest::new(KeyRange::all())))
        .expect("the newest values are in memory");

    let content = answer
        .kvs
        .into_iter()
        .map(|kv| (kv.key.to_vec(), kv.value.to_vec()))
        .collect();
    Ok((answer.revision, content))
}

fn write(disk: &SimulatedDisk, name: &str, bytes: &[u8]) {
    let files = disk.files();
    let file = files.create(name).expect("the disk works");
    file.write_at(0, bytes).expect("the disk works");
    file.sync().expect("the disk works");
    files.sync_directory().expect("the disk works");
}

/// A clock that stands still.
struct Stopped;

impl Clock for Stopped {
    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }

    fn unix(&self) -> Duration {
        Duration::from_secs(1)
    }
}

const STORE: u64 = 7;

/// The files, and what they contain.
struct Log {
    manifest: Vec<u8>,
    segments: BTreeMap<FileId, Vec<u8>>,
    frames: FrameBuffer,
    last: FileId,
    revision: Revision,
    content: Content,
    /// The content at every revision.
    history: BTreeMap<Revision, Content>,
    /// Bytes were changed, removed or added.
    is_damaged: bool,
    /// Something was written with a valid checksum that no store writes.
    is_forged: bool,
}

impl Log {
    fn build(data: &[u8]) -> Log {
        let mut log = Log {
            manifest: Manifest::fresh(STORE).encode(),
            segments: BTreeMap::new(),
            frames: FrameBuffer::new(FileId(1), 0),
            last: FileId(1),
            revision: Revision::FIRST,
            content: Content::new(),
            history: BTreeMap::from([(Revision::FIRST, Content::new())]),
            is_damaged: false,
            is_forged: false,
        };
        log.begin_segment(None);

        let mut input = Input(data);
        while let Some(instruction) = input.byte() {
            log.perform(instruction, &mut input);
        }
        log.end_segment();

        log
    }

    fn perform(&mut self, instruction: u8, input: &mut Input<'_>) {
        match instruction % 10 {
            0..=2 => self.put(input),
            3 => self.delete(input),
            4 => self.lease_or_compaction(input),
            5 => {
                self.end_segment();
                let length = self.segments[&self.last].len();
                let previous = (
                    self.last,
                    u32::try_from(length).expect("segments are short"),
                );
                self.last = FileId(self.last.0 + 1);
                self.frames = FrameBuffer::new(self.last, 0);
                self.begin_segment(Some(previous));
            }
            6 => self.forge_frame(input),
            7 => self.forge_manifest(input),
            8 => self.damage_segment(input),
            _ => {
                let garbage = input.bytes();
                self.end_segment();
                let segment = self.segments.entry(self.last).or_default();
                segment.extend_from_slice(garbage);
                self.is_damaged = true;
            }
        }
    }

    fn begin_segment(&mut self, previous: Option<(FileId, u32)>) {
        SegmentHeader {
            store: STORE,
            previous,
            revision: self.revision,
        }
        .append(&mut self.frames);
    }

    /// Moves what was framed into the segment. Damage is done to that.
    fn end_segment(&mut self) {
        let framed = self.frames.bytes();
        self.segments
            .entry(self.last)
            .or_default()
            .extend_from_slice(framed);
        self.frames.advance();
    }

    fn push(&mut self, revision: Revision, fill: impl FnOnce(&mut Vec<u8>)) {
        let batch = self.frames.end();
        self.frames.push(
            Stamp {
                revision,
                time: 1000,
                batch,
            },
            fill,
        );
    }

    fn put(&mut self, input: &mut Input<'_>) {
        let (key, value) = (input.key(), input.bytes());
        let revision = self.revision.next();
        self.push(revision, |out| {
            Record::Put {
                key,
                value,
                create: revision,
                version: 1,
                lease: None,
            }
            .encode(out);
        });
        self.content.insert(key.to_vec(), value.to_vec());
        self.has_written(revision);
    }

    fn delete(&mut self, input: &mut Input<'_>) {
        let key = input.key();
        let revision = self.revision.next();
        self.push(revision, |out| Record::Delete { key }.encode(out));
        self.content.remove(key);
        self.has_written(revision);
    }

    fn has_written(&mut self, revision: Revision) {
        self.revision = revision;
        self.history.insert(revision, self.content.clone());
    }

    fn lease_or_compaction(&mut self, input: &mut Input<'_>) {
        let (kind, number) = (input.byte().unwrap_or_default(), input.number());
        let revision = self.revision;
        let Some(id) = LeaseId::from_wire(i64::from(kind)) else {
            return;
        };
        self.push(revision, |out| {
            let record = match kind % 3 {
                0 => Record::GrantLease {
                    id,
                    ttl: Duration::from_millis(number),
                },
                1 => Record::EndLease { id },
                _ => Record::Compact {
                    revision: Revision::new(number.min(revision.get())),
                },
            };
            record.encode(out);
        });
    }

    /// A frame with any payload and stamp.
    fn forge_frame(&mut self, input: &mut Input<'_>) {
        let revision = match input.byte() {
            Some(0) => Revision::new(input.number()),
            _ => self.revision.next(),
        };
        let batch = u32::try_from(input.number() % 4096).expect("below 4096");
        let payload = input.bytes();
        self.frames.push(
            Stamp {
                revision,
                time: input.number(),
                batch,
            },
            |out| out.extend_from_slice(payload),
        );
        (self.is_damaged, self.is_forged) = (true, true);
    }

    fn forge_manifest(&mut self, input: &mut Input<'_>) {
        self.manifest = super::layout::forged_manifest(input.bytes());
        (self.is_damaged, self.is_forged) = (true, true);
    }

    fn damage_segment(&mut self, input: &mut Input<'_>) {
        self.end_segment();
        let segment = self.segments.entry(self.last).or_default();
        let at = usize::try_from(input.number() % 65536).expect("below 65536");
        match input.byte().unwrap_or_default() {
            0 => segment.truncate(at),
            mask => {
                if let Some(byte) = segment.get_mut(at) {
                    *byte ^= mask;
                }
            }
        }
        self.is_damaged = true;
    }
}

/// The rest of the input.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    /// A length and so many bytes.
    fn bytes(&mut self) -> &'a [u8] {
        let length = usize::from(self.byte().unwrap_or_default()).min(self.0.len());
        let (bytes, rest) = self.0.split_at(length);
        self.0 = rest;
        bytes
    }

    /// No store has an empty key.
    fn key(&mut self) -> &'a [u8] {
        match self.bytes() {
            [] => b"/",
            key => key,
        }
    }

    /// A number of up to eight bytes: small ones are as likely as large ones.
    fn number(&mut self) -> u64 {
        let bytes = self.bytes();
        bytes
            .iter()
            .take(8)
            .fold(0, |number, byte| number << 8 | u64::from(*byte))
    }
}

#[cfg(test)]
mod tests {
    use crate::fuzz_corpus;

    #[test]
    fn any_content_of_the_disk_keeps_every_property() {
        fuzz_corpus::run("store_recovery", super::recovery, 500);
    }
}
