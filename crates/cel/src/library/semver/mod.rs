//! Semantic versions.

mod table;

pub(super) use table::FUNCTIONS;
