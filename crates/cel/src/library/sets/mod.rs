//! Lists as sets.

mod table;

pub(super) use table::FUNCTIONS;
