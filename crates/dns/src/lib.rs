//! Cluster DNS: names of Services and of the pods behind them.
//!
//! What the API server tells of Namespaces, Services and EndpointSlices is cut down to
//! [`zone::facts`] and kept in a [`Zone`], an index that changes with every event. A question comes
//! in through `server/`, is asked of the zone ([`zone::answer`], pure: it decides everything that
//! is the cluster's own), and goes on to the upstream servers when it is about another name.
//! `follow.rs` brings the API's changes into the zone. The facts are also written to a file: a
//! process that starts while the API server is away answers from what was last known.

mod follow;
mod run;
pub mod server;
mod state;
pub mod zone;

pub use run::{Config, Others, RunError, run};
pub use zone::Zone;
