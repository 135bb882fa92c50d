//! Pod: what a node runs.
//!
//! [`strategy`] is the pod's part in the road of a write: [`shape`] fills in what the server
//! decides, [`validate`] judges the spec (of templates too), [`update`], [`status`], [`ephemeral`]
//! and [`resize`] judge what may change in which part, [`warnings`] tells what the writer should
//! know. A Binding gives a pod its node ([`binding`]), an Eviction ends it if its budget allows
//! ([`eviction`]).
//!
//! Kinds that have a template of pods take [`validate_template`] and [`template_warnings`].

mod annotation;
pub(in crate::registry) mod binding;
mod condition;
mod difference;
mod ephemeral;
pub(in crate::registry) mod eviction;
mod internal;
mod options;
mod part;
mod qos;
mod resize;
mod same;
mod shape;
mod status;
mod strategy;
#[cfg(test)]
mod tests;
mod update;
mod validate;
mod warnings;

use coracle_api::catalog::{BUILTIN, Resource};

pub(in crate::registry) use options::Options;
pub(in crate::registry) use strategy::Pods;
pub(in crate::registry) use validate::node_selector::selector as validate_node_selector;
pub(in crate::registry) use validate::volume::persistent as validate_persistent_source;
pub(in crate::registry) use validate::{
    template as validate_template, template_metadata as validate_template_metadata,
};
pub(in crate::registry) use warnings::template as template_warnings;

/// The resource, for whoever comes from another.
fn resource() -> &'static Resource {
    BUILTIN
        .resource("", "v1", "pods")
        .expect("pods are built in")
}
