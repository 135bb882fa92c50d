//! Kinds of `apps`: what keeps pods of one template running, and its history.

pub(super) mod controller_revision;
pub(super) mod deployment;
pub(super) mod replica_set;
mod workload;
