//! The protobuf wire format: varints, tags, lengths.

use crate::fuzz::steps;

/// Why bytes are no protobuf message of their type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    #[error("unexpected EOF")]
    Truncated,
    #[error("proto: integer overflow")]
    Overflow,
    #[error("field number {0} is out of range")]
    BadTag(u64),
    #[error("proto: illegal wireType {0}")]
    BadWireType(u8),
    #[error("proto: unexpected end of group")]
    BadGroup,
    #[error("wire type {found} where {wanted} was expected")]
    WrongWireType { found: u8, wanted: u8 },
}

pub(super) const VARINT: u8 = 0;
pub(super) const FIXED64: u8 = 1;
pub(super) const BYTES: u8 = 2;
const GROUP: u8 = 3;
const END_GROUP: u8 = 4;
const FIXED32: u8 = 5;

/// One field's content on the wire.
#[derive(Clone, Copy, Debug)]
pub(super) enum Payload<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32,
    Bytes(&'a [u8]),
    Group,
}

impl<'a> Payload<'a> {
    pub(super) fn varint(self) -> Result<u64, WireError> {
        match self {
            Payload::Varint(number) => Ok(number),
            other => Err(WireError::WrongWireType {
                found: other.wire_type(),
                wanted: VARINT,
            }),
        }
    }

    pub(super) fn fixed64(self) -> Result<u64, WireError> {
        match self {
            Payload::Fixed64(number) => Ok(number),
            other => Err(WireError::WrongWireType {
                found: other.wire_type(),
                wanted: FIXED64,
            }),
        }
    }

    pub(super) fn bytes(self) -> Result<&'a [u8], WireError> {
        match self {
            Payload::Bytes(bytes) => Ok(bytes),
            other => Err(WireError::WrongWireType {
                found: other.wire_type(),
                wanted: BYTES,
            }),
        }
    }

    fn wire_type(self) -> u8 {
        match self {
            Payload::Varint(_) => VARINT,
            Payload::Fixed64(_) => FIXED64,
            Payload::Fixed32 => FIXED32,
            Payload::Bytes(_) => BYTES,
            Payload::Group => GROUP,
        }
    }
}

/// Reads the fields of one message.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Number of consecutive fields with this number that follow, a lower bound. Nothing is
    /// consumed.
    pub(super) fn repeats(&self, number: u32) -> usize {
        let mut ahead = Reader { bytes: self.bytes };
        let mut count = 0;
        while !ahead.is_empty() && matches!(ahead.tag(), Ok((next, BYTES)) if next == number) {
            let Ok(Ok(len)) = ahead.varint().map(usize::try_from) else {
                break;
            };
            if ahead.take(len).is_err() {
                break;
            }
            count += 1;
        }

        count
    }

    /// The next field's number and content.
    #[inline(always)]
    pub(super) fn next(&mut self) -> Result<Option<(u32, Payload<'a>)>, WireError> {
        if self.bytes.is_empty() {
            return Ok(None);
        }

        steps::count(1);
        let (number, wire_type) = self.tag()?;
        let payload = match wire_type {
            VARINT => Payload::Varint(self.varint()?),
            FIXED64 => Payload::Fixed64(u64::from_le_bytes(
                self.take(8)?.try_into().expect("eight bytes were taken"),
            )),
            FIXED32 => {
                self.take(4)?;
                Payload::Fixed32
            }
            BYTES => {
                let len = self.varint()?;
                Payload::Bytes(self.take(usize::try_from(len).map_err(|_| WireError::Truncated)?)?)
            }
            GROUP => {
                self.skip_group()?;
                Payload::Group
            }
            END_GROUP => return Err(WireError::BadGroup),
            other => return Err(WireError::BadWireType(other)),
        };

        Ok(Some((number, payload)))
    }

    #[inline(always)]
    fn tag(&mut self) -> Result<(u32, u8), WireError> {
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).map_err(|_| WireError::BadTag(tag >> 3))?;
        if number == 0 {
            return Err(WireError::BadTag(0));
        }
        Ok((number, u8::try_from(tag & 7).expect("three bits")))
    }

    /// Skips a group; our types do not use them, but an unknown field may.
    fn skip_group(&mut self) -> Result<(), WireError> {
        let mut open = 1usize;
        while open > 0 {
            steps::count(1);
            let (_, wire_type) = self.tag()?;
            match wire_type {
                VARINT => {
                    self.varint()?;
                }
                FIXED64 => {
                    self.take(8)?;
                }
                FIXED32 => {
                    self.take(4)?;
                }
                BYTES => {
                    let len = self.varint()?;
                    self.take(usize::try_from(len).map_err(|_| WireError::Truncated)?)?;
                }
                GROUP => open += 1,
                END_GROUP => open -= 1,
                other => return Err(WireError::BadWireType(other)),
            }
        }

        Ok(())
    }

    #[inline(always)]
    pub(super) fn varint(&mut self) -> Result<u64, WireError> {
        // One byte is the common case: tags and short lengths.
        if let Some((first, rest)) = self.bytes.split_first()
            && *first < 0x80
        {
            self.bytes = rest;
            return Ok(u64::from(*first));
        }
        self.long_varint()
    }

    fn long_varint(&mut self) -> Result<u64, WireError> {
        let mut number = 0u64;
        for (index, byte) in self.bytes.iter().enumerate().take(10) {
            if index == 9 && *byte > 1 {
                return Err(WireError::Overflow);
            }
            number |= u64::from(byte & 0x7f) << (7 * index);
            if *byte < 0x80 {
                self.bytes = &self.bytes[index + 1..];
                return Ok(number);
            }
        }

        Err(if self.bytes.len() < 10 {
            WireError::Truncated
        } else {
            WireError::Overflow
        })
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], WireError> {
        steps::count(len);
        let taken = self.bytes.get(..len).ok_or(WireError::Truncated)?;
        self.bytes = &self.bytes[len..];
        Ok(taken)
    }
}

/// Writes a message from its end to its start: a length is known when it is written, so nothing is
/// measured or moved.
pub(super) struct BackWriter {
    /// Filled from the end; the message is `buffer[start..]`.
    buffer: Vec<u8>,
    start: usize,
}

impl BackWriter {
    pub(super) fn with_capacity(capacity: usize) -> BackWriter {
        BackWriter {
            buffer: vec![0; capacity],
            start: capacity,
        }
    }

    /// The number of bytes written.
    pub(super) fn len(&self) -> usize {
        self.buffer.len() - self.start
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        if self.start < bytes.len() {
            self.grow(bytes.len());
        }
        let end = self.start;
        self.start -= bytes.len();
        self.buffer[self.start..end].copy_from_slice(bytes);
    }

    fn grow(&mut self, by: usize) {
        let written = self.len();
        let mut larger = vec![0; (self.buffer.len() * 2).max(written + by)];
        let start = larger.len() - written;
        larger[start..].copy_from_slice(&self.buffer[self.start..]);
        self.buffer = larger;
        self.start = start;
    }

    pub(super) fn varint(&mut self, mut number: u64) {
        let mut encoded = [0u8; 10];
        let mut len = 0;
        loop {
            let low = u8::try_from(number & 0x7f).expect("seven bits");
            number >>= 7;
            encoded[len] = if number == 0 { low } else { low | 0x80 };
            len += 1;
            if number == 0 {
                break;
            }
        }

        self.bytes(&encoded[..len]);
    }

    pub(super) fn tag(&mut self, number: u16, wire_type: u8) {
        self.varint(u64::from(number) << 3 | u64::from(wire_type));
    }

    /// Length and tag of the message or text written since `end` (an earlier [`BackWriter::len`]).
    pub(super) fn close(&mut self, number: u16, end: usize) {
        self.varint((self.len() - end) as u64);
        self.tag(number, BYTES);
    }

    pub(super) fn text(&mut self, number: u16, text: &[u8]) {
        let end = self.len();
        self.bytes(text);
        self.close(number, end);
    }

    pub(super) fn number(&mut self, number: u16, value: u64) {
        self.varint(value);
        self.tag(number, VARINT);
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.buffer.drain(..self.start);
        self.buffer
    }
}
