//! The text of an expression, and places in it.

mod issue;

use std::sync::Arc;

pub use issue::{Issue, Issues};

/// The text of an expression. Places are counted in characters, as cel-go counts them.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    text: Arc<str>,
    /// Offsets, in characters, of the character after each line feed, and of the end plus one.
    line_offsets: Vec<u32>,
}

/// A place: lines from 1, columns from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    pub line: i32,
    pub column: i32,
}

impl Location {
    /// Of an error that has no place.
    pub const NONE: Self = Self {
        line: -1,
        column: -1,
    };
}
