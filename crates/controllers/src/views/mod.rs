//! Projections of objects that several controllers read.

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

/// The index of pods, and of other controlled objects, by the UID of their controller. Objects
/// without a controller are found under their namespace, prefixed with a slash, which no UID has.
pub const BY_CONTROLLER: &str = "controllerUID";

/// The index of pods by their node.
pub const BY_NODE: &str = "node";

/// The key in [`BY_CONTROLLER`] of objects without a controller.
pub fn orphans_of(namespace: &str) -> String {
    format!("/{namespace}")
}
