//! cel-go's string library, version 2.

mod format;
mod run;
mod table;

pub(super) use table::FUNCTIONS;
