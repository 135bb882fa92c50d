//! The service proxy: compiles Services to nftables rules.
//!
//! Services, EndpointSlices and this Node from the API server are reduced to [`facts`] and held in
//! a [`State`], which tracks what has changed since the last sync. [`endpoints`] selects endpoints,
//! [`compile`] derives [`rules`] (both pure), [`claims`] combines the rules of all Services, and
//! [`nft`] applies them in one transaction. [`conntrack`] deletes stale UDP entries, `health/`
//! serves health checks. The rules outlive the process: Services keep working while it is down.
//!
//! [`run`] follows the API and syncs. [`NodeNetwork`] prepares the node for forwarding.

pub mod claims;
pub mod compile;
pub mod config;
pub mod conntrack;
pub mod endpoints;
pub mod facts;
mod health;
mod metrics;
pub mod nft;
mod node_network;
pub mod rules;
mod run;
mod state;
mod sysctls;

pub use config::{Config, DetectLocal};
pub use node_network::{NodeNetwork, NodeNetworkError};
pub use run::{RunError, clean, run};
pub use state::{HealthCheck, PodRanges, State};
pub use sysctls::{Conntrack, SysctlError};
