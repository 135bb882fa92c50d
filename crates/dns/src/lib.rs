//! Cluster DNS: names of Services and of the pods behind them.
//!
//! Namespaces, Services and EndpointSlices from the API server are reduced to [`zone::facts`] and
//! held in a [`Zone`], an index that is updated with every event. `server/` receives queries,
//! answers those in the cluster domain from the zone ([`zone::answer`], pure), and forwards others
//! to the upstream servers, or to those that a ConfigMap names (`customization.rs`). `follow.rs` applies API changes to the zone. The facts are also saved
//! to a file: a process that starts without the API server answers from the last saved state.

mod customization;
mod follow;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
#[cfg(test)]
#[path = "../../../fuzz/run_corpus.rs"]
mod fuzz_corpus;
mod run;
pub mod server;
mod state;
pub mod zone;

pub use customization::{Customization, CustomizationError};
pub use run::{Config, Forward, RunError, run};
pub use zone::Zone;
