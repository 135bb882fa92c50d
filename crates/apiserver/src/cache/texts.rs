//! Several short texts in one piece of memory: what selectors look at, kept for every version of every object.

use std::sync::Arc;

/// Texts in order, each behind its length.
#[derive(Clone, Debug)]
pub(super) struct Texts(Arc<[u8]>);

impl Texts {
    pub(super) fn new<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Texts {
        let mut packed = Vec::with_capacity(256);
        for text in texts {
            let text = text.as_ref();
            write_length(text.len(), &mut packed);
            packed.extend_from_slice(text.as_bytes());
        }
        Texts(packed.into())
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

/// Seven bits a byte, the lowest first; the highest bit says that more follow.
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
        assert_eq!(Texts::new(texts).iter().collect::<Vec<_>>(), texts);
    }

    #[test]
    fn what_is_packed_is_read_back_in_order() {
        check(&[]);
        check(&[""]);
        check(&["app", "", "web", "größer"]);
        for length in [127, 128, 129, 16_383, 16_384, 100_000] {
            check(&["before", &"x".repeat(length), "after"]);
        }
    }
}
