//! Kubernetes' list library.

mod table;

pub(super) use table::FUNCTIONS;
