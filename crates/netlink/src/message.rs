//! Encodes and decodes netlink messages.
//!
//! A message is a header of 16 bytes, a fixed part that depends on its type, and attributes:
//! length, type, payload, padded to four bytes; some are nested. Headers are in native byte order.
//! Numbers in attributes are too in rtnetlink, but in network order in netfilter.

pub(crate) const HEADER: usize = 16;
const ALIGN: usize = 4;
/// Marks a nested attribute, and the bits of a type without such marks.
pub(crate) const NESTED: u16 = 0x8000;
const KIND: u16 = 0x3fff;

/// What a message asks for.
#[derive(Clone, Copy)]
pub(crate) struct Header {
    pub(crate) kind: u16,
    /// Besides `NLM_F_REQUEST`.
    pub(crate) flags: i32,
    pub(crate) sequence: u32,
}

/// Messages in one buffer, to be sent together.
#[derive(Default)]
pub(crate) struct Messages {
    bytes: Vec<u8>,
}

impl Messages {
    /// Appends a message: the fixed part, then attributes.
    pub(crate) fn add(
        &mut self,
        header: Header,
        fixed: &[u8],
        fill: impl FnOnce(&mut Attributes<'_>),
    ) {
        let start = self.bytes.len();
        let flags = u16::try_from(libc::NLM_F_REQUEST | header.flags)
            .expect("the flags of messages have 16 bits");

        self.bytes.extend_from_slice(&[0; 4]);
        self.bytes.extend_from_slice(&header.kind.to_ne_bytes());
        self.bytes.extend_from_slice(&flags.to_ne_bytes());
        self.bytes.extend_from_slice(&header.sequence.to_ne_bytes());
        self.bytes.extend_from_slice(&[0; 4]);
        self.bytes.extend_from_slice(fixed);
        fill(&mut Attributes {
            bytes: &mut self.bytes,
        });

        let length = u32::try_from(self.bytes.len() - start)
            .expect("a list of attributes ends before 64 KiB, and a message has few lists");
        self.bytes[start..start + 4].copy_from_slice(&length.to_ne_bytes());
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// The attributes of a message, or of an attribute.
pub(crate) struct Attributes<'a> {
    bytes: &'a mut Vec<u8>,
}

impl Attributes<'_> {
    pub(crate) fn put(&mut self, kind: u16, payload: &[u8]) {
        self.append(kind, |bytes| bytes.extend_from_slice(payload));
    }

    /// A number in native byte order, as in rtnetlink.
    pub(crate) fn native(&mut self, kind: u16, number: u32) {
        self.put(kind, &number.to_ne_bytes());
    }

    /// A number in network order, as in netfilter.
    pub(crate) fn number(&mut self, kind: u16, number: u32) {
        self.put(kind, &number.to_be_bytes());
    }

    /// Strings are zero-terminated.
    pub(crate) fn text(&mut self, kind: u16, text: &str) {
        self.append(kind, |bytes| {
            bytes.extend_from_slice(text.as_bytes());
            bytes.push(0);
        });
    }

    pub(crate) fn nested(&mut self, kind: u16, fill: impl FnOnce(&mut Attributes<'_>)) {
        self.nested_after(kind | NESTED, &[], fill);
    }

    /// An attribute whose payload is a fixed part and attributes.
    pub(crate) fn nested_after(
        &mut self,
        kind: u16,
        fixed: &[u8],
        fill: impl FnOnce(&mut Attributes<'_>),
    ) {
        self.append(kind, |bytes| {
            bytes.extend_from_slice(fixed);
            fill(&mut Attributes { bytes });
        });
    }

    /// How many bytes the buffer has so far.
    pub(crate) fn position(&self) -> usize {
        self.bytes.len()
    }

    fn append(&mut self, kind: u16, fill: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        fill(self.bytes);

        let length = u16::try_from(self.bytes.len() - start)
            .expect("names are short, and lists are cut before 64 KiB");
        self.bytes[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self.bytes[start + 2..start + 4].copy_from_slice(&kind.to_ne_bytes());
        self.bytes
            .resize(start + usize::from(length).next_multiple_of(ALIGN), 0);
    }
}

/// One message that was received.
pub(crate) struct Answer<'a> {
    pub(crate) kind: u16,
    pub(crate) flags: u16,
    pub(crate) sequence: u32,
    pub(crate) body: &'a [u8],
}

/// The messages of one read.
pub(crate) fn answers(mut bytes: &[u8]) -> impl Iterator<Item = Answer<'_>> {
    std::iter::from_fn(move || {
        let length = usize::try_from(native(bytes.get(0..4)?)).ok()?;
        let message = bytes
            .get(..length)
            .filter(|message| message.len() >= HEADER)?;
        bytes = bytes.get(length.next_multiple_of(ALIGN)..).unwrap_or(&[]);

        Some(Answer {
            kind: u16::from_ne_bytes([message[4], message[5]]),
            flags: u16::from_ne_bytes([message[6], message[7]]),
            sequence: native(&message[8..12]),
            body: &message[HEADER..],
        })
    })
}

/// The attributes after a fixed part: type and payload.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(*bytes.first_chunk()?));
        let kind = u16::from_ne_bytes(*bytes.get(2..)?.first_chunk()?);
        let payload = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(ALIGN)..).unwrap_or(&[]);
        Some((kind & KIND, payload))
    })
}

/// The payload of the first attribute of a type.
pub(crate) fn find(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(bytes)
        .find(|(kind, _)| *kind == wanted)
        .map(|(_, payload)| payload)
}

/// A zero-terminated string.
pub(crate) fn text(payload: &[u8]) -> &[u8] {
    payload.split(|byte| *byte == 0).next().unwrap_or(payload)
}

/// A number of four bytes in native byte order; zero if there are fewer.
pub(crate) fn native(bytes: &[u8]) -> u32 {
    bytes
        .first_chunk()
        .map_or(0, |four| u32::from_ne_bytes(*four))
}

/// The same in network order.
pub(crate) fn number(bytes: &[u8]) -> u32 {
    bytes
        .first_chunk()
        .map_or(0, |four| u32::from_be_bytes(*four))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_encoded_and_decoded() {
        let mut messages = Messages::default();
        for sequence in [42, 43] {
            let header = Header {
                kind: 16,
                flags: 4,
                sequence,
            };
            messages.add(header, &[9; 16], |message| {
                message.text(3, "eth0");
                message.nested(18, |inner| inner.native(1, 77));
                message.number(5, 78);
            });
        }

        let all: Vec<_> = answers(messages.bytes()).collect();
        assert_eq!(all.len(), 2);
        let answer = &all[1];
        assert_eq!((answer.kind, answer.flags, answer.sequence), (16, 5, 43));

        let body = &answer.body[16..];
        assert_eq!(find(body, 3).map(text), Some(b"eth0".as_slice()));
        let nested = find(body, 18).and_then(|inner| find(inner, 1));
        assert_eq!(nested.map(native), Some(77));
        assert_eq!(find(body, 5).map(number), Some(78));
        assert_eq!(find(body, 6), None);
    }

    #[test]
    fn truncated_messages_are_ignored() {
        let mut messages = Messages::default();
        let header = Header {
            kind: 16,
            flags: 0,
            sequence: 1,
        };
        messages.add(header, &[0; 16], |message| message.text(3, "eth0"));
        let whole = messages.bytes();
        assert_eq!(answers(&whole[..whole.len() - 1]).count(), 0);
        assert_eq!(attributes(&[200, 0, 1, 0, 5]).count(), 0);
        assert_eq!(
            attributes(&[2, 0, 1, 0]).count(),
            0,
            "a length below the header's"
        );
    }
}
