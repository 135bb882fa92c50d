//! Tests of containers: the runtime with its supervisors, real namespaces and cgroups.
//!
//! One program for all of them: each test program links the whole crate.

#![expect(clippy::unwrap_used, reason = "what fails here is the test")]

#[path = "../common/mod.rs"]
mod common;
mod crash_recovery;
mod escapes;
mod exec_and_attach;
mod host;
mod keeper;
mod lifecycle;
mod logs;
mod takeover;
mod unresponsive_supervisor;
mod unsupported_limits;
mod volumes;
