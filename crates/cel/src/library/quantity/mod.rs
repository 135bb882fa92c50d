//! Quantities.

mod table;

pub(super) use table::FUNCTIONS;
