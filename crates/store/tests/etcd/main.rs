//! The store beside real etcds: the engine on their clusters, and their command line on ours.
//!
//! Needs what `scripts/test-prereqs.sh` installs.

#![expect(clippy::unwrap_used, reason = "a test panics where something is wrong")]

mod access;
mod cluster;
mod contract;
mod engine;
mod etcdctl;
mod faces;
mod histories;
mod migration;
mod tls;
mod trouble;
