//! Kinds of `rbac.authorization.k8s.io`: permissions, and their subjects.
//!
//! Roles and cluster roles share their rules, the two kinds of bindings their subjects; any name
//! that is a valid path segment is allowed. On an update each is validated as new first, then the
//! change of its metadata.

pub(crate) mod binding;
pub mod covers;
mod escalation;
#[cfg(test)]
mod print_tests;
pub(crate) mod role;
mod rule;

pub use rule::Rule;

use coracle_api::go_text::Quoted;
use coracle_api::{Text, names};

use crate::OwnMetadata;

const GROUP: &str = "rbac.authorization.k8s.io";

/// The prefix of a generated name is validated like a whole name, in which a trailing dash is
/// valid.
const OWN: OwnMetadata = OwnMetadata {
    on_update: false,
    ..OwnMetadata::named(names::path_segment_name)
};

/// The role that a binding refers to was not found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unresolved {
    #[error("clusterrole.rbac.authorization.k8s.io {} not found", Quoted(.0))]
    ClusterRole(Text),
    #[error("role.rbac.authorization.k8s.io {} not found", Quoted(.0))]
    Role(Text),
    #[error("unsupported role reference kind: {}", Quoted(.0))]
    Kind(Text),
}

/// Several errors in one line, without repetitions.
pub fn aggregate(errors: &[impl ToString]) -> String {
    let mut texts: Vec<String> = Vec::new();
    for text in errors.iter().map(ToString::to_string) {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    if texts.len() == 1 {
        texts.remove(0)
    } else {
        format!("[{}]", texts.join(", "))
    }
}
