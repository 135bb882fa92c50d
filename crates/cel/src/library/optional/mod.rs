//! Optional values.

mod table;

pub(super) use table::FUNCTIONS;
