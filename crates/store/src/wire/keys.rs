//! Keys, key ranges and events.

use super::mvccpb;
use crate::{End, Event, EventKind, KeyRange, KeyValue, LeaseId, Revision};
use bytes::Bytes;

/// As the end of a range: every key from its start on. As its start: the smallest possible key.
const ZERO_BYTE: &[u8] = b"\0";

/// The `key` and `range_end` of a request.
pub(crate) fn encode_range(range: &KeyRange) -> (Bytes, Bytes) {
    let smallest = || Bytes::from_static(ZERO_BYTE);

    if *range.end() == End::Single {
        return (range.start().clone(), Bytes::new());
    }

    let start = if range.start().is_empty() {
        smallest()
    } else {
        range.start().clone()
    };

    let end = match range.end() {
        // These two have a special meaning on the wire. No key is before them, so the range is
        // empty: encode it as one that ends where it starts.
        End::Before(end) if end.is_empty() || end == ZERO_BYTE => start.clone(),
        End::Before(end) => end.clone(),
        End::Single | End::Unbounded => smallest(),
    };

    (start, end)
}

pub(crate) fn decode_range(key: Bytes, range_end: Bytes) -> KeyRange {
    match &range_end[..] {
        b"" => KeyRange::single(key),
        ZERO_BYTE => KeyRange::from(key),
        _ => KeyRange::between(key, range_end),
    }
}

pub(crate) fn encode_kv(kv: KeyValue) -> mvccpb::KeyValue {
    mvccpb::KeyValue {
        key: kv.key,
        value: kv.value,
        create_revision: kv.create_revision.to_wire(),
        mod_revision: kv.mod_revision.to_wire(),
        version: i64::try_from(kv.version).unwrap_or(i64::MAX),
        lease: kv.lease.map_or(0, LeaseId::to_wire),
    }
}

pub(crate) fn decode_kv(kv: mvccpb::KeyValue) -> KeyValue {
    KeyValue {
        key: kv.key,
        value: kv.value,
        create_revision: revision(kv.create_revision),
        mod_revision: revision(kv.mod_revision),
        version: count(kv.version),
        lease: LeaseId::from_wire(kv.lease),
    }
}

pub(crate) fn encode_event(event: Event) -> mvccpb::Event {
    let kind = match event.kind {
        EventKind::Put => mvccpb::event::EventType::Put,
        EventKind::Delete => mvccpb::event::EventType::Delete,
    };
    mvccpb::Event {
        r#type: kind.into(),
        kv: Some(encode_kv(event.kv)),
        prev_kv: event.previous.map(encode_kv),
    }
}

pub(crate) fn decode_event(event: mvccpb::Event) -> Event {
    let kind = match event.r#type() {
        mvccpb::event::EventType::Put => EventKind::Put,
        mvccpb::event::EventType::Delete => EventKind::Delete,
    };
    let kv = decode_kv(event.kv.unwrap_or_default());
    Event {
        kind,
        kv,
        previous: event.prev_kv.map(decode_kv),
    }
}

/// A revision that a server sent; it is never negative.
pub(crate) fn revision(wire: i64) -> Revision {
    Revision::from_wire(wire).unwrap_or_default()
}

pub(crate) fn count(wire: i64) -> u64 {
    u64::try_from(wire).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_survives_encoding_and_decoding() {
        let check = |range: KeyRange| {
            let (key, end) = encode_range(&range);
            let decoded = decode_range(key, end);
            for key in ["\0", "\0a", "a", "a\0", "ab", "b", "z", "\u{7f}"] {
                assert_eq!(
                    decoded.contains(key.as_bytes()),
                    range.contains(key.as_bytes()),
                    "{range:?} {key:?}"
                );
            }
        };

        check(KeyRange::all());
        check(KeyRange::single("a"));
        check(KeyRange::prefix("a"));
        check(KeyRange::prefix(""));
        check(KeyRange::from("b"));
        check(KeyRange::between("a", "b"));
        check(KeyRange::between("b", "a"));
        check(KeyRange::between("a", ""));
        check(KeyRange::between("a", "\0"));
        check(KeyRange::between("", "b"));
    }
}
