//! Range reads: which keys, at which revision, and how much of them.

use crate::{KeyRange, KeyValue, Revision};

/// A read of the keys of a range, in byte order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeRequest {
    pub range: KeyRange,
    /// The revision to read at; `None` reads the newest.
    pub at: Option<Revision>,
    /// At most this many keys; `None` for all of them.
    pub limit: Option<usize>,
    pub content: Content,
}

/// How much of each key is returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Content {
    #[default]
    Full,
    /// Everything but the values.
    KeysOnly,
    /// Only the number of keys.
    CountOnly,
}

/// The keys found, all at one revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeAnswer {
    /// The store's revision when the read ran; not older than any write acknowledged before the
    /// request.
    pub revision: Revision,
    pub kvs: Vec<KeyValue>,
    /// The number of keys in the range, regardless of the limit.
    pub count: u64,
    /// Whether the limit left some keys out.
    pub more: bool,
}

impl RangeRequest {
    /// All of `range`, newest, with values.
    pub fn new(range: KeyRange) -> Self {
        RangeRequest {
            range,
            at: None,
            limit: None,
            content: Content::Full,
        }
    }

    #[must_use]
    pub fn at(mut self, revision: Revision) -> Self {
        self.at = Some(revision);
        self
    }

    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = Some(limit);
        self
    }

    #[must_use]
    pub fn keys_only(mut self) -> Self {
        self.content = Content::KeysOnly;
        self
    }

    #[must_use]
    pub fn count_only(mut self) -> Self {
        self.content = Content::CountOnly;
        self
    }
}
