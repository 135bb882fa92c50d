//! Services to rules of the kernel: how a packet for a cluster address reaches a pod.
//!
//! What the API server tells of Services, EndpointSlices and this Node is cut down to [`facts`] and
//! kept in a [`State`], which knows what has changed since the kernel was last told. [`endpoints`]
//! chooses whom packets may go to, [`compile`] says which [`rules`] follow from that (both pure),
//! [`claims`] puts the wishes of all Services together, and [`nft`] tells the kernel, in one
//! transaction. [`conntrack`] makes it forget datagrams that go astray, `health/` answers load
//! balancers. The rules outlive the process: while it is away, Services stay where they were.
//!
//! [`run`] follows the API and does all this. [`NodeNetwork`] is what a node needs besides, so that
//! pods' packets are forwarded at all.

pub mod claims;
pub mod compile;
pub mod config;
pub mod conntrack;
pub mod endpoints;
pub mod facts;
mod health;
pub mod nft;
mod node_network;
pub mod rules;
mod run;
mod state;

pub use config::{Config, DetectLocal};
pub use node_network::{NodeNetwork, NodeNetworkError};
pub use run::{RunError, clean, run};
pub use state::{HealthCheck, PodRanges, State};
