//! IP addresses.

mod table;

pub(super) use table::FUNCTIONS;
