//! Paths of JSON patches.

mod table;

pub(super) use table::FUNCTIONS;
