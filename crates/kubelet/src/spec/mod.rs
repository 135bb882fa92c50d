//! Converts pod specs to CRI configurations. Pure, apart from files that it names.
//!
//! [`sandbox`] and [`container`] assemble a configuration from the other modules: labels, security
//! context, resources, DNS, host name.

pub mod container;
pub mod dns;
pub mod hosts;
pub mod labels;
pub mod names;
pub mod resources;
pub mod sandbox;
pub mod security;

/// Why a configuration cannot be built: the text of `CreateContainerConfigError`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SpecError(pub String);
