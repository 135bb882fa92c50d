//! What controllers hold of objects that several of them look at.

mod cron_job;
mod daemon_set;
mod deployment;
mod end;
mod job;
mod node;
mod owned;
mod pod;
mod protection;
mod replica_set;
mod service;
mod stateful_set;

pub use cron_job::{Concurrency, CronJob};
pub use daemon_set::DaemonSet;
pub use deployment::{Deployment, Rollout};
pub use job::Job;
pub use node::{Node, NodeCondition};
pub use owned::{FOREGROUND, ORPHAN, Owned, Owner};
pub use pod::{
    End, JOB_INDEX, JOB_INDEX_FAILURES, JOB_INDEX_IGNORED_FAILURES, JOB_TRACKING, JobIndex,
    NamedPort, Phase, Pod, next_available,
};
pub use protection::Protection;
pub use replica_set::ReplicaSet;
pub use service::Service;
pub use stateful_set::StatefulSet;

/// The index of pods, and of whatever else is controlled, by the UID of what controls them. Those
/// that nothing controls are found under the namespace, after a slash that no UID has.
pub const BY_CONTROLLER: &str = "controllerUID";

/// The index of pods by the node that they are on.
pub const BY_NODE: &str = "node";

/// Under which an object is found in [`BY_CONTROLLER`] that nothing controls.
pub fn orphans_of(namespace: &str) -> String {
    format!("/{namespace}")
}
