//! Reads: pages of keys from the index, and values from disk if memory has only their position.

use super::files::File;
use super::frame::{self, Position};
use super::index::{Index, ReadEvent, ReadVersion};
use super::record::Record;
use crate::{Content, Event, KeyRange, KeyValue, RangeAnswer, RangeRequest, Revision, StoreError};
use bytes::{Bytes, BytesMut};

/// How many keys are read under one hold of the index lock: a long list delays the publication of a
/// write only briefly.
pub(crate) const PAGE: usize = 2000;

/// A part of a range answer.
pub(crate) struct Page {
    pub(crate) found: Vec<ReadVersion>,
    pub(crate) count: u64,
    /// Where the next page starts.
    pub(crate) next: Option<Bytes>,
}

/// The next keys of `range` at `revision`; only the first `wanted` of them are returned, all are
/// counted.
pub(crate) fn page(index: &Index, range: &KeyRange, revision: Revision, wanted: usize) -> Page {
    let mut page = Page {
        found: Vec::new(),
        count: 0,
        next: None,
    };

    for (seen, (key, existing)) in index.at(range, revision).enumerate() {
        if seen == PAGE {
            page.next = Some(Bytes::copy_from_slice(key));
            break;
        }
        page.count += 1;
        if page.found.len() < wanted {
            page.found.push(index.found(key, &existing));
        }
    }

    page
}

/// How many keys of an answer are returned.
pub(crate) fn wanted(request: &RangeRequest) -> usize {
    match request.content {
        Content::CountOnly => 0,
        Content::Full | Content::KeysOnly => request.limit.unwrap_or(usize::MAX),
    }
}

/// A whole range at once, for callers that hold the index lock anyway.
pub(crate) fn range_now(
    index: &Index,
    request: &RangeRequest,
    at: Revision,
) -> Result<RangeAnswer, StoreError> {
    let found = index
        .at(&request.range, at)
        .map(|(key, existing)| index.found(key, &existing));
    let kvs = found.map(ReadVersion::resolve).collect::<Result<_, _>>()?;
    Ok(answer(index.revision(), kvs, request))
}

/// An answer with all the keys of a range, limited as requested.
pub(crate) fn answer(
    revision: Revision,
    mut kvs: Vec<KeyValue>,
    request: &RangeRequest,
) -> RangeAnswer {
    let count = kvs.len() as u64;
    kvs.truncate(wanted(request));
    answer_counted(revision, kvs, count, request)
}

/// An answer with the returned keys, out of `count`.
pub(crate) fn answer_counted(
    revision: Revision,
    mut kvs: Vec<KeyValue>,
    count: u64,
    request: &RangeRequest,
) -> RangeAnswer {
    if request.content == Content::KeysOnly {
        kvs.iter_mut().for_each(|kv| kv.value = Bytes::new());
    }
    let more = request.content != Content::CountOnly && count > kvs.len() as u64;
    RangeAnswer {
        revision,
        kvs,
        count,
        more,
    }
}

impl ReadVersion {
    pub(crate) fn is_in_memory(&self) -> bool {
        matches!(self, ReadVersion::InMemory(_))
    }

    /// The version itself, read from disk if needed.
    pub(crate) fn resolve(self) -> Result<KeyValue, StoreError> {
        match self {
            ReadVersion::InMemory(kv) => Ok(kv),
            ReadVersion::OnDisk {
                key,
                modified,
                at,
                file,
            } => read_version(&*file, &key, modified, at),
        }
    }
}

impl ReadEvent {
    pub(crate) fn is_in_memory(&self) -> bool {
        match self {
            ReadEvent::InMemory(_) => true,
            ReadEvent::Parts { kv, previous, .. } => {
                kv.is_in_memory() && previous.as_ref().is_none_or(ReadVersion::is_in_memory)
            }
        }
    }

    pub(crate) fn resolve(self, with_previous: bool) -> Result<Event, StoreError> {
        match self {
            ReadEvent::InMemory(mut event) => {
                event.previous = event.previous.filter(|_| with_previous);
                Ok(event)
            }
            ReadEvent::Parts { kind, kv, previous } => {
                let previous = previous
                    .filter(|_| with_previous)
                    .map(ReadVersion::resolve)
                    .transpose()?;

                Ok(Event {
                    kind,
                    kv: kv.resolve()?,
                    previous,
                })
            }
        }
    }
}

fn read_version(
    file: &dyn File,
    key: &Bytes,
    modified: Revision,
    at: Position,
) -> Result<KeyValue, StoreError> {
    let corrupt = |what: String| StoreError::Corrupt {
        what,
        location: format!("file {} at byte {}", at.file.0, at.offset),
    };

    let mut bytes = BytesMut::zeroed(at.len as usize);
    file.read_at(at.offset.into(), &mut bytes)
        .map_err(|error| corrupt(format!("unreadable ({error})")))?;
    let bytes = bytes.freeze();
    let frame =
        frame::parse(at.file, at.offset, &bytes).ok_or_else(|| corrupt("wrong checksum".into()))?;

    let records = Record::decode_all(frame.payload).map_err(|error| corrupt(error.to_string()))?;
    match records.get(at.record as usize) {
        Some(Record::Put {
            key: found,
            value,
            create,
            version,
            lease,
        }) if found == key => Ok(KeyValue {
            key: key.clone(),
            value: bytes.slice_ref(value),
            create_revision: *create,
            mod_revision: modified,
            version: *version,
            lease: *lease,
        }),
        _ => Err(corrupt("unexpected key".into())),
    }
}
