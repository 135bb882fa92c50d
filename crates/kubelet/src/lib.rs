//! The kubelet: runs the pods of one node and reports their status.
//!
//! It works on the typed `Pod` of `k8s-openapi`, read through [`pod::PodView`]: it reads specs and
//! writes only status, mirror pods and its own node, so the typed form loses nothing. A pod is
//! identified by its UID everywhere ([`pod::PodId`]); names are for users and paths.
//!
//! Data flow: the pods of this node come from the API server and static pod manifests (`sync_loop`)
//! into the [`pod_manager`]; a worker per pod (`pod_workers`) syncs each with the runtime
//! ([`observed`] state, [`actions`] to take) and reports through the `status_manager`. Containers
//! get their [`volumes`], [`env`]ironment, [`probes`] and [`hooks`]; [`references`] caches the
//! ConfigMaps and Secrets that pods use, [`downward`] implements the downward API. Orphaned pods,
//! and all pods on node [`shutdown`], are terminated by what their container annotations hold.

pub mod actions;
pub mod admit;
pub mod backoff;
pub mod certificates;
mod cgroups;
pub mod config;
pub mod downward;
pub mod env;
#[cfg(test)]
#[path = "../../../fuzz/run_corpus.rs"]
mod fuzz_corpus;
pub mod hooks;
pub mod host;
mod housekeeping;
mod http_get;
mod images;
mod keyed_locks;
mod kubelet;
pub mod layout;
mod logs;
mod manifests;
mod mirror_pods;
mod node;
mod observe;
pub mod observed;
mod pleg;
pub mod pod;
pub mod pod_manager;
mod pod_workers;
pub mod probes;
pub mod qos;
pub mod references;
pub mod requests;
mod runtime_operations;
pub mod server;
pub mod shutdown;
pub mod spec;
pub mod status;
mod status_manager;
mod sync_loop;
mod sysctls;
mod terminate;
pub mod volumes;

pub use config::{Config, Shown};
pub use images::{ImageSettings, ListedImages, Pulls, Verification};
pub use kubelet::{Kubelet, StartError};
pub use logs::rotation::LogRotation;
