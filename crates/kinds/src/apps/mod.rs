//! Kinds of `apps`: what keeps pods of one template running, and its history.

pub(crate) mod controller_revision;
pub(crate) mod daemon_set;
pub(crate) mod deployment;
#[cfg(test)]
mod print_tests;
pub(crate) mod replica_set;
pub(crate) mod stateful_set;
pub(crate) mod workload;
