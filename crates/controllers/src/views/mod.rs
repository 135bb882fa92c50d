//! What controllers hold of objects that several of them look at.

mod deployment;
mod node;
mod owned;
mod pod;
mod replica_set;

pub use deployment::{Deployment, Rollout};
pub use node::{Node, NodeCondition};
pub use owned::{FOREGROUND, ORPHAN, Owned, Owner};
pub use pod::{NamedPort, Phase, Pod};
pub use replica_set::ReplicaSet;

/// The index of pods, and of whatever else is controlled, by the UID of what controls them. Those that nothing controls
/// are found under the namespace, after a slash that no UID has.
pub const BY_CONTROLLER: &str = "controllerUID";

/// The index of pods by the node that they are on.
pub const BY_NODE: &str = "node";

/// Under which an object is found in [`BY_CONTROLLER`] that nothing controls.
pub fn orphans_of(namespace: &str) -> String {
    format!("/{namespace}")
}
