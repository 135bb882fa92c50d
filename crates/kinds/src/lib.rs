//! What each built-in kind does differently from the others.
//!
//! The API server handles every kind in the same way; the catalogue lists its fields, versions and
//! subresources. Where a kind has behaviour of its own, it is here, in `<group>/<kind>.rs` (or a
//! folder of that name): its [`Strategy`] (what is filled in, validated and warned about on a
//! write), the printer of its row in `kubectl get`, the fields that a write cannot own, and which
//! handlers its subresources have. A file declares all of it in one static [`Behaviour`], and
//! [`table`] has one line per kind that refers to it. Kinds without a line have the default
//! behaviour.
//!
//! Strategies are pure but for what they reach through [`Context`]: the request they belong to, and
//! a [`Cluster`], which the API server implements. That trait is the whole boundary to the server:
//! this crate depends on neither HTTP nor the store. Handlers of subresources that handle a request
//! (evictions, bindings, reviews, tokens) are in the API server; a kind only names them
//! ([`Handler`]). What they decide about a kind is here.
//!
//! Shared by all kinds: [`validate`] (checks that many kinds make), [`print`] (rows and cells),
//! [`metadata`], [`status`] (API errors), [`access`] and [`user`] (request attributes and users).

#[macro_use]
pub mod print;

pub mod access;
mod admissionregistration;
pub mod apiextensions;
mod apiregistration;
mod apiserverinternal;
mod apps;
pub mod authentication;
pub mod authorization;
mod autoscaling;
mod batch;
mod behaviour;
mod certificates;
mod cluster;
mod coordination;
pub mod core;
mod discovery;
pub mod flowcontrol;
mod metadata;
mod networking;
mod node;
mod part;
pub mod policy;
pub mod rbac;
mod reset_fields;
mod resource;
mod scheduling;
pub mod status;
mod storage;
mod storagemigration;
mod strategy;
mod table;
mod user;
mod validate;
mod version_order;
pub mod warnings;

pub use autoscaling::scale;
pub use behaviour::{Behaviour, Handler};
pub use cluster::{Allocation, Cluster};
pub use metadata::OwnMetadata;
pub(crate) use metadata::keep_metadata;
pub use part::Part;
pub use reset_fields::{only, owned_through};
pub use status::ApiError;
pub use strategy::{AnyStrategy, Context, Errors, Grace, SPEC, Settle, Strategy, View};
pub use table::behaviour;
pub use user::{
    ANONYMOUS, AUTHENTICATED, Caller, MASTERS, UNAUTHENTICATED, User, service_account_groups,
};
pub use validate::text;
pub use version_order::kube_aware;

use coracle_api::catalog::{BUILTIN, Resource};

/// A built-in resource.
pub fn builtin(group: &str, version: &str, plural: &str) -> &'static Resource {
    BUILTIN
        .resource(group, version, plural)
        .expect("the resource is built in")
}
