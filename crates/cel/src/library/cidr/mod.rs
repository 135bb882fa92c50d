//! IP networks.

mod table;

pub(super) use table::FUNCTIONS;
