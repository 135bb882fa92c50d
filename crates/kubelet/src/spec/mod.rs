//! What the runtime is asked to make: a pod's spec in the words of CRI. Pure, but for files that it
//! names.
//!
//! [`sandbox`] and [`container`] put a configuration together from the parts beside them, each of
//! which is one question: how it is labelled, who it runs as, what it may use, whom it asks for
//! names, what it is called.

pub mod container;
pub mod dns;
pub mod hosts;
pub mod labels;
pub mod names;
pub mod resources;
pub mod sandbox;
pub mod security;

/// Why a container or sandbox cannot even be described: the text of `CreateContainerConfigError`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SpecError(pub String);
