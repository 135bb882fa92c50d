//! Kinds of `apps`: what keeps pods of one template running, and its history.

pub(super) mod controller_revision;
pub(super) mod daemon_set;
pub(super) mod deployment;
pub(super) mod replica_set;
pub(super) mod stateful_set;
pub(super) mod workload;
