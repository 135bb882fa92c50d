//! Encodes and decodes rtnetlink messages.
//!
//! A message is a header of 16 bytes, a fixed part that depends on its type, and attributes:
//! length, type, payload, padded to four bytes; some are nested. Everything is in native byte
//! order.

const HEADER: usize = 16;
const ALIGN: usize = 4;

/// A request. Its sequence number is set when it is sent.
pub(crate) struct Message {
    bytes: Vec<u8>,
}

impl Message {
    /// A request of a type, with its fixed part.
    pub(crate) fn new(kind: u16, flags: u16, fixed: &[u8]) -> Self {
        let mut bytes = vec![0; HEADER];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        bytes.extend_from_slice(fixed);
        Self { bytes }
    }

    pub(crate) fn with(mut self, kind: u16, payload: &[u8]) -> Self {
        self.append(kind, |bytes| bytes.extend_from_slice(payload));
        self
    }

    pub(crate) fn with_number(self, kind: u16, number: u32) -> Self {
        self.with(kind, &number.to_ne_bytes())
    }

    /// Strings are zero-terminated.
    pub(crate) fn with_text(self, kind: u16, text: &str) -> Self {
        self.with(kind, &[text.as_bytes(), &[0]].concat())
    }

    /// An attribute whose payload is a fixed part, often empty, and attributes.
    pub(crate) fn with_nested(
        self,
        kind: u16,
        fixed: &[u8],
        fill: impl FnOnce(Self) -> Self,
    ) -> Self {
        let mut outer = self;
        outer.append(kind, |bytes| {
            let inner = fill(Self {
                bytes: fixed.to_vec(),
            });
            bytes.extend_from_slice(&inner.bytes);
        });
        outer
    }

    fn append(&mut self, kind: u16, fill: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        fill(&mut self.bytes);
        let length =
            u16::try_from(self.bytes.len() - start).expect("what is sent here is far below 64 KiB");
        self.bytes[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self.bytes[start + 2..start + 4].copy_from_slice(&kind.to_ne_bytes());
        self.bytes
            .resize(self.bytes.len().next_multiple_of(ALIGN), 0);
    }

    /// The complete message.
    pub(crate) fn sealed(mut self, sequence: u32) -> Vec<u8> {
        let length = u32::try_from(self.bytes.len()).expect("what is sent here is far below 4 GiB");
        self.bytes[0..4].copy_from_slice(&length.to_ne_bytes());
        self.bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.bytes
    }
}

/// One message of a response.
pub(crate) struct Answer<'a> {
    pub(crate) kind: u16,
    pub(crate) sequence: u32,
    pub(crate) body: &'a [u8],
}

/// The messages of one read.
pub(crate) fn answers(mut bytes: &[u8]) -> impl Iterator<Item = Answer<'_>> {
    std::iter::from_fn(move || {
        let length = usize::try_from(number(bytes.get(0..4)?)).ok()?;
        let message = bytes
            .get(..length)
            .filter(|message| message.len() >= HEADER)?;
        bytes = bytes.get(length.next_multiple_of(ALIGN)..).unwrap_or(&[]);
        let kind = u16::from_ne_bytes([message[4], message[5]]);

        Some(Answer {
            kind,
            sequence: number(&message[8..12]),
            body: &message[HEADER..],
        })
    })
}

/// The attributes after a fixed part.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(bytes.get(0..2)?.try_into().ok()?));
        let kind = u16::from_ne_bytes(bytes.get(2..4)?.try_into().ok()?);
        let payload = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(ALIGN)..).unwrap_or(&[]);
        Some((kind, payload))
    })
}

/// A number of four bytes; zero if there are fewer.
pub(crate) fn number(bytes: &[u8]) -> u32 {
    bytes
        .first_chunk()
        .map_or(0, |four| u32::from_ne_bytes(*four))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_encoded_and_decoded() {
        let sealed = Message::new(16, 5, &[9; 16])
            .with_text(3, "eth0")
            .with_nested(18, &[], |inner| inner.with_number(1, 77))
            .sealed(42);
        let answer = answers(&sealed).next().unwrap();
        assert_eq!((answer.kind, answer.sequence), (16, 42));

        let found: Vec<_> = attributes(&answer.body[16..]).collect();
        assert_eq!(found[0], (3, b"eth0\0".as_slice()));
        assert_eq!(
            attributes(found[1].1)
                .next()
                .map(|(kind, value)| (kind, number(value))),
            Some((1, 77))
        );
    }

    #[test]
    fn truncated_messages_are_ignored() {
        let sealed = Message::new(16, 0, &[0; 16]).with_text(3, "eth0").sealed(1);
        assert_eq!(answers(&sealed[..sealed.len() - 1]).count(), 0);
        assert_eq!(attributes(&[200, 0, 1, 0, 5]).count(), 0);
        assert_eq!(
            attributes(&[2, 0, 1, 0]).count(),
            0,
            "a length below the header's"
        );
    }
}
