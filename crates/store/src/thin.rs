//! Shared immutable bytes behind a thin pointer: the length is stored with them.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::ops::Deref;

use triomphe::ThinArc;

/// Short shared bytes. Half the size of `Arc<[u8]>`, which matters where a store holds a few of
/// them for every key.
#[derive(Clone)]
pub struct Thin(ThinArc<(), u8>);

impl From<&[u8]> for Thin {
    fn from(bytes: &[u8]) -> Thin {
        Thin(ThinArc::from_header_and_slice((), bytes))
    }
}

impl Deref for Thin {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0.slice
    }
}

impl Borrow<[u8]> for Thin {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl Ord for Thin {
    fn cmp(&self, other: &Thin) -> Ordering {
        self.deref().cmp(other.deref())
    }
}

impl PartialOrd for Thin {
    fn partial_cmp(&self, other: &Thin) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Thin {
    fn eq(&self, other: &Thin) -> bool {
        self.deref() == other.deref()
    }
}

impl Eq for Thin {}

impl fmt::Debug for Thin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.deref().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_ordered_and_shared_behind_a_thin_pointer() {
        assert_eq!(size_of::<Thin>(), size_of::<usize>());
        for bytes in [&b""[..], b"a", &[0; 1000]] {
            let thin = Thin::from(bytes);
            assert_eq!(&*thin, bytes);
            assert!(std::ptr::eq(&*thin, &*thin.clone()));
        }
        assert!(Thin::from(&b"a"[..]) < Thin::from(&b"ab"[..]));
        assert_eq!(Thin::from(&b"b"[..]), Thin::from(&b"b"[..]));
    }
}
