//! Keys, ranges of keys, and what is stored under one.

use crate::{LeaseId, Revision};
use bytes::Bytes;
use std::ops::Bound;

/// A key with its value, as of one revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyValue {
    pub key: Bytes,
    /// Shared with the store and every other reader. Empty in a deletion and in a keys-only read.
    pub value: Bytes,
    /// When the key was last created. [`Revision::ZERO`] in a deletion.
    pub create_revision: Revision,
    /// When the key was last written or deleted.
    pub mod_revision: Revision,
    /// How many times the key was written since it was created. 0 in a deletion.
    pub version: u64,
    /// The lease that the key is attached to.
    pub lease: Option<LeaseId>,
}

/// Which keys a request is about, in byte order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    start: Bytes,
    end: End,
}

/// Where a range of keys ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The range is the one key it starts with.
    Single,
    /// The range ends before this key.
    Before(Bytes),
    /// The range has no end.
    Unbounded,
}

impl KeyRange {
    pub fn single(key: impl Into<Bytes>) -> Self {
        KeyRange {
            start: key.into(),
            end: End::Single,
        }
    }

    /// Every key that begins with `prefix`; every key at all where it is empty.
    pub fn prefix(prefix: impl Into<Bytes>) -> Self {
        let start = prefix.into();
        let end = after_prefix(&start).map_or(End::Unbounded, End::Before);
        KeyRange { start, end }
    }

    /// Its bounds, for an ordered map. A range that ends before it starts is empty.
    pub(crate) fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        let start: &[u8] = &self.start;
        let end = match &self.end {
            End::Single => Bound::Included(start),
            End::Before(end) if **end <= *start => Bound::Excluded(start),
            End::Before(end) => Bound::Excluded(&**end),
            End::Unbounded => Bound::Unbounded,
        };
        (Bound::Included(start), end)
    }

    /// `start` and every key after it.
    pub fn from(start: impl Into<Bytes>) -> Self {
        KeyRange {
            start: start.into(),
            end: End::Unbounded,
        }
    }

    /// `start` and the keys after it, `end` excluded. Empty where `end` is not after `start`.
    pub fn between(start: impl Into<Bytes>, end: impl Into<Bytes>) -> Self {
        KeyRange {
            start: start.into(),
            end: End::Before(end.into()),
        }
    }

    pub fn all() -> Self {
        KeyRange::from(Bytes::new())
    }

    /// The same range without the keys before `start`, for the next page of a list.
    #[must_use]
    pub fn starting_at(&self, start: impl Into<Bytes>) -> Self {
        KeyRange {
            start: start.into(),
            end: self.end.clone(),
        }
    }

    pub fn start(&self) -> &Bytes {
        &self.start
    }

    pub fn end(&self) -> &End {
        &self.end
    }

    pub fn contains(&self, key: &[u8]) -> bool {
        match &self.end {
            End::Single => key == self.start,
            End::Before(end) => key >= &self.start[..] && key < &end[..],
            End::Unbounded => key >= &self.start[..],
        }
    }

    /// Whether some key could be in both ranges.
    pub fn overlaps(&self, other: &KeyRange) -> bool {
        match (&self.end, &other.end) {
            (End::Single, _) => other.contains(&self.start),
            (_, End::Single) => self.contains(&other.start),
            (mine, theirs) => ends_after(mine, &other.start) && ends_after(theirs, &self.start),
        }
    }
}

fn ends_after(end: &End, key: &[u8]) -> bool {
    match end {
        End::Before(end) => &end[..] > key,
        End::Single | End::Unbounded => true,
    }
}

/// The first key after all those that begin with `prefix`.
fn after_prefix(prefix: &[u8]) -> Option<Bytes> {
    let last = prefix.iter().rposition(|byte| *byte < 0xff)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(Bytes::from(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_holds_the_keys_that_begin_with_it_and_no_others() {
        let check = |prefix: &'static [u8], key: &[u8], inside: bool| {
            assert_eq!(
                KeyRange::prefix(prefix).contains(key),
                inside,
                "{prefix:?} {key:?}"
            );
        };

        check(b"/pods/", b"/pods/", true);
        check(b"/pods/", b"/pods/\xff\xff", true);
        check(b"/pods/", b"/pods0", false);
        check(b"/pods/", b"/pods", false);
        check(b"a\xff", b"a\xff\xffz", true);
        check(b"a\xff", b"b", false);
        check(b"\xff\xff", b"\xff\xff\xff", true);
        check(b"", b"anything", true);
    }

    #[test]
    fn ranges_overlap_where_a_key_could_be_in_both() {
        let check = |a: KeyRange, b: KeyRange, expected: bool| {
            assert_eq!(a.overlaps(&b), expected, "{a:?} {b:?}");
            assert_eq!(b.overlaps(&a), expected, "{b:?} {a:?}");
        };

        check(KeyRange::single("a"), KeyRange::single("a"), true);
        check(KeyRange::single("a"), KeyRange::single("b"), false);
        check(KeyRange::single("b"), KeyRange::between("a", "c"), true);
        check(KeyRange::single("c"), KeyRange::between("a", "c"), false);
        check(
            KeyRange::between("a", "c"),
            KeyRange::between("c", "d"),
            false,
        );

        check(KeyRange::between("a", "c"), KeyRange::from("b"), true);
        check(KeyRange::all(), KeyRange::between("a", "b"), true);
    }
}
