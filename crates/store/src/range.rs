//! Reading: which keys, at which revision, and how much of them.

use crate::{KeyRange, KeyValue, Revision};

/// Asks for the keys of a range, in byte order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeRequest {
    pub range: KeyRange,
    /// The revision to read at; `None` reads the newest.
    pub at: Option<Revision>,
    /// At most so many keys; `None` for all of them.
    pub limit: Option<usize>,
    pub content: Content,
}

/// How much of each key an answer holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Content {
    #[default]
    Full,
    /// Everything but the values.
    KeysOnly,
    /// The number of keys and none of them.
    CountOnly,
}

/// The keys found. All of them are as of one revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeAnswer {
    /// The store's revision when the answer was made; not older than any write acknowledged before
    /// the request.
    pub revision: Revision,
    pub kvs: Vec<KeyValue>,
    /// How many keys the range holds, whatever the limit.
    pub count: u64,
    /// The limit left some keys out.
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
