//! Several short texts in one allocation: the fields that selectors read, for every version of
//! every object.

use coracle_store::Thin;

/// Texts in order, each behind its length.
#[derive(Clone, Debug)]
pub(super) struct Texts(Thin);

/// Texts that are being packed.
#[derive(Default)]
pub(super) struct Packed(Vec<u8>);

impl Packed {
    pub(super) fn push(&mut self, text: &str) {
        // One piece of memory for nearly everything.
        if self.0.is_empty() {
            self.0.reserve(256);
        }
        write_length(text.len(), &mut self.0);
        self.0.extend_from_slice(text.as_bytes());
    }
}

impl From<Packed> for Texts {
    fn from(packed: Packed) -> Texts {
        Texts(packed.0[..].into())
    }
}

impl Texts {
    /// The bytes of the first text.
    pub(super) fn first(&self) -> &[u8] {
        let mut rest = &self.0[..];
        let length = read_length(&mut rest);
        &rest[..length]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        let mut rest = &self.0[..];
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let length = read_length(&mut rest);
            let (text, after) = rest.split_at(length);
            rest = after;
            Some(std::str::from_utf8(text).expect("it was written as text"))
        })
    }
}

/// Seven bits a byte, the lowest first; the highest bit is set if more follow.
fn write_length(mut length: usize, out: &mut Vec<u8>) {
    loop {
        let low = u8::try_from(length & 0x7f).expect("seven bits");
        length >>= 7;
        if length == 0 {
            return out.push(low);
        }
        out.push(low | 0x80);
    }
}

fn read_length(rest: &mut &[u8]) -> usize {
    let (mut length, mut shift) = (0, 0);
    while let [byte, after @ ..] = *rest {
        *rest = after;
        length |= usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
        shift += 7;
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(texts: &[&str]) {
        let mut packed = Packed::default();
        texts.iter().for_each(|text| packed.push(text));
        let packed = Texts::from(packed);
        assert_eq!(packed.iter().collect::<Vec<_>>(), texts);
        assert_eq!(packed.first(), texts.first().unwrap_or(&"").as_bytes());
    }

    #[test]
    fn what_is_packed_is_read_back_in_order() {
        check(&[]);
        check(&[""]);
        assert_eq!(Texts::from(Packed::default()).first(), b"");
        check(&["app", "", "web", "größer"]);
        for length in [127, 128, 129, 16_383, 16_384, 100_000] {
            check(&["before", &"x".repeat(length), "after"]);
        }
    }
}
