//! cel-go's string library, version 2.

mod table;

pub(super) use table::FUNCTIONS;
