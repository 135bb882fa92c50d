//! Selectors of questions to the authorizer.

mod table;

pub(super) use table::FUNCTIONS;
