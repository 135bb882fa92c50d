//! Tests of controllers against an API server in this process.
//!
//! One program for all of them: each test program links the whole crate.

#![expect(clippy::unwrap_used, reason = "what fails here is the test")]

mod common;
mod cronjob;
mod daemonset;
mod deployment;
mod disruption;
mod endpoints;
mod housekeeping;
mod job;
mod nodes;
mod operator_example;
mod replicaset;
mod replicationcontroller;
mod statefulset;
mod validatingadmissionpolicy_status;
