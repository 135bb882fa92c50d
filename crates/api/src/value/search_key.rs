//! A search key for sorted names.
//!
//! Requests look up members by name very often, and nearly all names differ within their first
//! eight bytes: these are compared as one number, and only names that share them byte by byte.

use std::cmp::Ordering;

/// A name, prepared for many comparisons.
#[derive(Clone, Copy)]
pub(crate) struct SearchKey<'a> {
    name: &'a str,
    beginning: u64,
}

impl<'a> SearchKey<'a> {
    pub(crate) fn new(name: &'a str) -> SearchKey<'a> {
        SearchKey {
            name,
            beginning: beginning(name.as_bytes()),
        }
    }

    /// The order of another name relative to this one, as a binary search needs it.
    #[inline]
    pub(crate) fn compare(self, other: &str) -> Ordering {
        match beginning(other.as_bytes()).cmp(&self.beginning) {
            // Shorter names are padded with zeros, so these may still differ.
            Ordering::Equal => other.cmp(self.name),
            different => different,
        }
    }
}

/// The first eight bytes as a number of the same order.
#[inline]
fn beginning(bytes: &[u8]) -> u64 {
    if let Some(first) = bytes.first_chunk() {
        return u64::from_be_bytes(*first);
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        // Four to seven: the last four overlap the first four, and are shifted into place.
        let (first, last): (u32, u32) = (u32::from_be_bytes(*first), u32::from_be_bytes(*last));
        return u64::from(first) << 32 | u64::from(last) << (8 * (8 - bytes.len()));
    }
    bytes.iter().enumerate().fold(0, |number, (index, byte)| {
        number | u64::from(*byte) << (56 - 8 * index)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn names_are_in_the_order_of_their_bytes(one in "[a-c\\x00é]{0,10}", other in "[a-c\\x00é]{0,10}") {
            prop_assert_eq!(SearchKey::new(&one).compare(&other), other.cmp(&one));
        }
    }

    #[test]
    fn beginnings_of_every_length_are_in_order() {
        let name = "abcdefghij";
        for length in 0..name.len() {
            let (shorter, longer) = (&name[..length], &name[..=length]);
            assert_eq!(
                SearchKey::new(longer).compare(shorter),
                Ordering::Less,
                "{shorter} {longer}"
            );

            assert_eq!(
                SearchKey::new(shorter).compare(longer),
                Ordering::Greater,
                "{shorter} {longer}"
            );

            assert_eq!(
                SearchKey::new(shorter).compare(shorter),
                Ordering::Equal,
                "{shorter}"
            );
        }
    }
}
