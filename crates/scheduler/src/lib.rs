//! The scheduler: chooses a node for each pod.
//!
//! The path of a pod: the event loop receives it from the API and adds it, as a small projection
//! ([`pod`]), to the queue ([`queue`]). When it is taken from the queue, one cycle ([`cycle`]) runs
//! the plugins of its profile ([`framework`], [`plugins`]) on the nodes in the cache ([`cache`]). A
//! chosen node is assumed in the cache at once and bound in the API by another task; a pod without
//! a node is reported as unschedulable and waits for an event ([`events`]) that may help according
//! to one of the plugins that rejected it. Namespaces, Services and budgets are in
//! [`related`]; the configuration is in [`config`].
//!
//! Everything but the event loop ([`run`]) is pure: time, random numbers and objects are arguments,
//! and nothing waits.

pub mod cache;
pub mod config;
pub mod cycle;
mod event_loop;
pub mod events;
pub mod framework;
pub mod labels;
pub mod node;
pub mod plugins;
pub mod pod;
pub mod queue;
pub mod related;
pub mod resources;
pub mod taints;
#[cfg(test)]
mod testing;

pub use event_loop::{RunError, run, run_with};
