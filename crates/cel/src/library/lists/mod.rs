//! Kubernetes' list library.

mod run;
mod table;

pub(super) use table::FUNCTIONS;
