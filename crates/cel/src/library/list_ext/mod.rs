//! cel-go's list library, version 3.

mod run;
mod table;

pub(super) use table::FUNCTIONS;
