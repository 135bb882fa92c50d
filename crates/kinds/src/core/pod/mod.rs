//! Pod: what a node runs.
//!
//! In its [`strategy`], [`shape`] sets the fields of the server, [`validate`] validates the spec
//! (of templates too), [`update`], [`status`], [`ephemeral`] and [`resize`] validate what each part
//! may change, [`warnings`] returns the warnings for the client. [`binding`] applies a Binding to a
//! pod; [`print`] makes its row in tables.
//!
//! Kinds that have a pod template use [`validate_template`] and [`template_warnings`].

mod annotation;
pub mod binding;
pub mod condition;
mod difference;
mod ephemeral;
mod internal;
mod options;
mod part;
mod print;
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

pub(crate) use options::Options;
pub use qos::class as qos_class;
pub(crate) use strategy::BEHAVIOUR;
pub(crate) use validate::node_selector::validate_node_selector;
pub(crate) use validate::resources::validate_overhead;
pub(crate) use validate::tolerations::validate_tolerations;
pub(crate) use validate::volume::validate_persistent_volume_source as validate_persistent_source;
pub(crate) use validate::{validate_template, validate_template_metadata};
pub(crate) use warnings::template as template_warnings;
