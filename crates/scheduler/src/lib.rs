//! Which node a pod goes to.
//!
//! The path of a pod: the shell sees it in the API and gives it, as a small projection ([`pod`]),
//! to the queue ([`queue`]). When its turn comes, one cycle ([`cycle`]) asks the plugins of its
//! profile ([`framework`], [`plugins`]) about the nodes in the cache ([`cache`]). A node that is
//! found is assumed in the cache at once and told to the API off the hot path; a pod without a node
//! says why and waits until something happens ([`events`]) that one of the plugins that refused it
//! thinks may help. What is around the pods (namespaces, Services, budgets) is in [`surroundings`];
//! what a user may change is in [`config`].
//!
//! Everything but the shell ([`run`]) is pure: time, dice and objects are handed in, and nothing
//! waits.

pub mod cache;
pub mod config;
pub mod cycle;
pub mod events;
pub mod framework;
pub mod labels;
pub mod node;
pub mod plugins;
pub mod pod;
pub mod queue;
pub mod resources;
mod shell;
pub mod surroundings;
pub mod taints;
#[cfg(test)]
mod testing;

pub use shell::{RunError, run, run_with};
