//! The controllers of a cluster.
//!
//! A controller is a folder: `plan.rs` decides, as a pure function, what one object needs now;
//! `mod.rs` reads the caches and carries out the plan. The [`framework`] is the same for all: informers
//! report changes, handlers turn them into keys, a queue hands the keys to workers, and each worker
//! runs *observe, plan, act*. [`views`] are the projections of objects that several controllers
//! read. The [`manager`] lists all controllers and starts the selected ones.

pub mod bootstrap_token;
pub mod certificates;
pub mod clusterrole_aggregation;
pub mod cronjob;
pub mod daemonset;
pub mod deployment;
pub mod disruption;
pub mod endpoints;
pub mod endpointslice;
pub mod endpointslice_mirroring;
pub mod framework;
pub mod garbage_collector;
pub mod history;
pub mod job;
pub mod manager;
pub mod namespace;
pub mod nodeipam;
pub mod nodelifecycle;
pub mod own_writes;
pub mod podgc;
pub mod pods;
pub mod pv_protection;
pub mod pvc_protection;
pub mod replicaset;
pub mod replicationcontroller;
pub mod resource_quota;
pub mod root_ca_publisher;
pub mod serviceaccount;
pub mod serviceaccount_token;
#[cfg(test)]
mod simulation;
pub mod statefulset;
pub mod storage_version_gc;
pub mod storage_version_migrator;
pub mod tainteviction;
pub mod template;
pub mod ttl_after_finished;
pub mod vac_protection;
pub mod validatingadmissionpolicy_status;
pub mod views;
mod write_status;

pub use framework::{Context, Controller, Feeds, Observation, Requeue, Runner};
pub use manager::{Manager, Selected};
