//! Named formats of strings.

mod table;

pub(super) use table::FUNCTIONS;
