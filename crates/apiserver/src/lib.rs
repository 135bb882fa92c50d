//! The API server: one request from TLS to bytes.
//!
//! A connection arrives at [`serve`]: TLS, HTTP/1.1 or HTTP/2, its limits. Each request of it passes
//! the [`chain`] (audit id, deadline, authentication, flow control, authorization) and reaches the
//! [`handler`], which parses path and query ([`request`]), finds the resource in the catalogue and
//! calls the [`registry`]: create, get, list, update, patch and delete of every kind. A write is
//! converted to the storage version ([`storage_version`]), passes [`admission`], is prepared and
//! validated by its kind's strategy (`coracle_kinds`), encoded once and swapped into the store; the
//! feed of the [`cache`] brings it back, and only then is it answered. Reads and watches
//! ([`watching`]) stop at the cache. [`render`] gives objects the requested form, [`answer`] makes
//! the response, [`status`] the refusals. [`connect`] leads to nodes and pods: logs, commands, ports,
//! proxies, [`aggregation`] to servers that serve other groups. [`discovery`] lists the served resources, [`openapi`] describes them, [`bootstrap`]
//! creates what a new cluster has.
//!
//! # Layers
//!
//! Modules use only those below them; `cargo xtask tidy` finds circles. From the bottom:
//!
//! 1. [`webhook_config`], [`definitions`] (what a CustomResourceDefinition defines), [`request`],
//!    [`files`], [`runtime_config`] (which built-in APIs are served)
//! 2. [`storage_version`], [`storage`] (bytes of an external etcd)
//! 3. [`cache`] (every object, and the custom resources that are served), [`served`]
//! 4. [`authn`], [`authz`], [`access`], [`webhook`] (the client of webhooks)
//! 5. [`admission`]
//! 6. [`registry`], [`loopback`] (the server as its own client)
//! 7. [`render`], [`answer`]
//! 8. [`flow`], [`bootstrap`], [`connect`], [`openapi`]
//! 9. [`aggregation`] (groups and versions of other servers)
//! 10. [`discovery`], [`definition_controller`], [`watching`]
//! 11. [`handler`], [`chain`], [`serve`], [`run`]

pub mod access;
pub mod admission;
pub mod aggregation;
pub mod answer;
mod aside;
pub mod authn;
pub mod authz;
pub mod bootstrap;
mod byte_budget;
pub mod cache;
pub mod chain;
pub mod connect;
mod definition_controller;
pub mod definitions;
mod deprecation;
pub mod discovery;
pub mod files;
pub mod flow;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
#[cfg(test)]
#[path = "../../../fuzz/run_corpus.rs"]
mod fuzz_corpus;
pub mod handler;
pub mod health;
pub mod hooks;
mod in_process;
pub mod lifecycle;
pub mod loopback;
pub mod metrics;
mod network_errors;
pub mod openapi;
mod plain;
pub mod registry;
pub mod render;
pub mod request;
pub mod run;
pub mod runtime_config;
pub mod serve;
pub mod served;
pub mod storage;
pub mod storage_version;
mod watching;
pub mod webhook;
pub mod webhook_config;

pub use chain::Browsers;
pub use coracle_client::World;
pub use coracle_kinds::{ApiError, status};
pub use in_process::InProcess;
pub use run::{Config, Listeners, RunError, run};
pub use runtime_config::{RuntimeConfig, RuntimeConfigError};

/// The release of Kubernetes that this server is, and which Coracle it belongs to.
pub const VERSION: &str = concat!("v1.36.4+coracle", env!("CARGO_PKG_VERSION"));
