//! One request from TLS to bytes.
//!
//! A connection arrives at [`serve`]: TLS, HTTP/1.1 or HTTP/2, its limits. Each request of it goes
//! to [`handler`], which takes the path apart ([`request`]), knows who asks ([`authn`]) and what
//! they may do ([`authz`]), finds the resource in the catalogue and hands over to the [`registry`]:
//! one road for every kind, with create, get, list, watch, update, patch and delete. A write is
//! brought into the version that is kept ([`storage_version`]), passes [`admission`], is shaped and judged by
//! its kind's strategy, encoded once and swapped into the store; the feed of the [`cache`] brings
//! it back, and only then is it answered. Reads and watches stop at the cache. [`render`] gives
//! objects the form that was asked for, [`answer`] makes the response, [`status`] the refusals.
//! [`connect`] leads to nodes and pods: logs, commands, ports, proxies. [`discovery`] tells what
//! there is, [`openapi`] what it looks like, [`bootstrap`] makes what a new cluster has.
//!
//! Not here yet: the strategies of many kinds.

pub mod access;
pub mod admission;
pub mod answer;
mod aside;
pub mod authn;
pub mod authz;
mod bodies;
pub mod bootstrap;
pub mod cache;
pub mod chain;
pub mod connect;
mod definition_controller;
pub mod definitions;
mod deprecation;
pub mod discovery;
pub mod flow;
pub mod handler;
pub mod health;
pub mod hooks;
mod in_process;
pub mod lifecycle;
pub mod loopback;
pub mod metrics;
pub mod openapi;
mod plain;
pub mod registry;
pub mod render;
pub mod request;
pub mod run;
pub mod serve;
pub mod served;
pub mod storage;
pub mod storage_version;
mod watching;

pub use coracle_client::World;
pub use coracle_kinds::{ApiError, status};
pub use in_process::InProcess;
pub use run::{Config, Doors, RunError, run};

/// The release of Kubernetes that this server is, and which Coracle it belongs to.
pub const VERSION: &str = concat!("v1.36.4+coracle", env!("CARGO_PKG_VERSION"));
