//! What the macros with two variables need.

mod table;

pub(super) use table::FUNCTIONS;
