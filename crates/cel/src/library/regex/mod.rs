//! Searches with regular expressions.

mod table;

pub(super) use table::FUNCTIONS;
