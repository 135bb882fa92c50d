//! Records: the contents of a frame's payload.

use crate::{LeaseId, Revision};
use bytes::{Buf, BufMut};
use std::time::Duration;

/// One change, or one item of state. The revision is in the frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Record<'a> {
    Put {
        key: &'a [u8],
        value: &'a [u8],
        create: Revision,
        version: u64,
        lease: Option<LeaseId>,
    },
    Delete {
        key: &'a [u8],
    },
    GrantLease {
        id: LeaseId,
        ttl: Duration,
    },
    EndLease {
        id: LeaseId,
    },
    Compact {
        revision: Revision,
    },
    /// The end of a part or backup, with its number of keys: without it the file is incomplete.
    End {
        keys: u64,
    },
}

/// Not a known record, although the checksum is correct: written by another version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown record")]
pub(crate) struct UnknownRecord;

const PUT: u8 = 1;
const DELETE: u8 = 2;
const GRANT_LEASE: u8 = 3;
const END_LEASE: u8 = 4;
const COMPACT: u8 = 5;
const END: u8 = 6;

impl<'a> Record<'a> {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Record::Put {
                key,
                value,
                create,
                version,
                lease,
            } => {
                out.put_u8(PUT);
                out.put_u64_le(create.get());
                out.put_u64_le(*version);
                out.put_i64_le(lease.map_or(0, LeaseId::to_wire));
                put_bytes(out, key);
                put_bytes(out, value);
            }
            Record::Delete { key } => {
                out.put_u8(DELETE);
                put_bytes(out, key);
            }
            Record::GrantLease { id, ttl } => {
                out.put_u8(GRANT_LEASE);
                out.put_i64_le(id.to_wire());
                out.put_u64_le(milliseconds(*ttl));
            }
            Record::EndLease { id } => {
                out.put_u8(END_LEASE);
                out.put_i64_le(id.to_wire());
            }
            Record::Compact { revision } => {
                out.put_u8(COMPACT);
                out.put_u64_le(revision.get());
            }
            Record::End { keys } => {
                out.put_u8(END);
                out.put_u64_le(*keys);
            }
        }
    }

    /// Decodes the next record of `payload` and advances it.
    pub(crate) fn decode(payload: &mut &'a [u8]) -> Result<Self, UnknownRecord> {
        decode(payload).ok_or(UnknownRecord)
    }

    /// Every record of a payload.
    pub(crate) fn decode_all(mut payload: &'a [u8]) -> Result<Vec<Self>, UnknownRecord> {
        let mut records = Vec::with_capacity(1);
        while !payload.is_empty() {
            records.push(Record::decode(&mut payload)?);
        }
        Ok(records)
    }
}

fn decode<'a>(from: &mut &'a [u8]) -> Option<Record<'a>> {
    Some(match from.try_get_u8().ok()? {
        PUT => {
            let create = Revision::new(from.try_get_u64_le().ok()?);
            let version = from.try_get_u64_le().ok()?;

            let lease = LeaseId::from_wire(from.try_get_i64_le().ok()?);
            Record::Put {
                create,
                version,
                lease,
                key: get_bytes(from)?,
                value: get_bytes(from)?,
            }
        }
        DELETE => Record::Delete {
            key: get_bytes(from)?,
        },
        GRANT_LEASE => {
            let id = LeaseId::from_wire(from.try_get_i64_le().ok()?)?;
            Record::GrantLease {
                id,
                ttl: Duration::from_millis(from.try_get_u64_le().ok()?),
            }
        }
        END_LEASE => Record::EndLease {
            id: LeaseId::from_wire(from.try_get_i64_le().ok()?)?,
        },
        COMPACT => Record::Compact {
            revision: Revision::new(from.try_get_u64_le().ok()?),
        },
        END => Record::End {
            keys: from.try_get_u64_le().ok()?,
        },
        _ => return None,
    })
}

pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.put_u32_le(super::frame::size(bytes.len()));
    out.extend_from_slice(bytes);
}

pub(crate) fn get_bytes<'a>(from: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(from.try_get_u32_le().ok()?).ok()?;
    let (bytes, rest) = from.split_at_checked(len)?;
    *from = rest;
    Some(bytes)
}

pub(crate) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_is_read_back_as_written_and_no_part_of_one_is() {
        let lease = LeaseId::from_wire(-5);
        let records = [
            Record::Put {
                key: b"k",
                value: b"value",
                create: Revision::new(3),
                version: 2,
                lease,
            },
            Record::Put {
                key: b"k",
                value: b"",
                create: Revision::new(3),
                version: 2,
                lease: None,
            },
            Record::Delete { key: b"key" },
            Record::GrantLease {
                id: LeaseId::from_wire(9).unwrap(),
                ttl: Duration::from_millis(1500),
            },
            Record::EndLease {
                id: LeaseId::from_wire(9).unwrap(),
            },
            Record::Compact {
                revision: Revision::new(77),
            },
            Record::End { keys: 12 },
        ];

        for record in records {
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            assert_eq!(Record::decode_all(&bytes), Ok(vec![record.clone()]));

            for cut in 1..bytes.len() {
                assert_eq!(
                    Record::decode_all(&bytes[..cut]),
                    Err(UnknownRecord),
                    "{record:?} cut at {cut}"
                );
            }
        }
    }
}
