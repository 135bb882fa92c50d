//! Pod: what a node runs.
//!
//! A Binding gives a pod its node ([`binding`]).

pub(in crate::registry) mod binding;
mod condition;

use coracle_api::catalog::{BUILTIN, Resource};

/// The resource, for whoever comes from another.
fn resource() -> &'static Resource {
    BUILTIN.resource("", "v1", "pods").expect("pods are built in")
}
