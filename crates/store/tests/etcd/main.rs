//! The store with real etcds: the etcd engine on etcd clusters, and `etcdctl` on our etcd server.
//!
//! Needs what `scripts/test-prereqs.sh` installs.

#![expect(clippy::unwrap_used, reason = "tests panic on failure")]

mod access;
mod cluster;
mod contract;
mod engine;
mod etcdctl;
mod failures;
mod histories;
mod migration;
mod servers;
mod tls;
