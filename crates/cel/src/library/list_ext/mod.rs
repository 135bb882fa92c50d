//! cel-go's list library, version 3.

mod table;

pub(super) use table::FUNCTIONS;
