//! One node: its pods are brought up, kept running, reported and taken down.
//!
//! What the kubelet works on is the typed `Pod` of `k8s-openapi`, read through [`pod::PodView`]: it
//! reads specs and writes nothing but status, metadata of mirror pods and its own node, so nothing
//! is lost by the typed form. A pod is known by its UID everywhere ([`pod::PodId`]); names are for
//! people and paths.
//!
//! The path of data: the pods of this node come from the API server and are kept in the [`roster`]
//! together with what the runtime says of each ([`observed`]). The rest of the crate asks these
//! two, and the [`host`] that it all runs on; where things lie on the disk is [`layout`]'s
//! business. What a pod needs besides containers is done behind the traits of [`parts`]: its
//! [`volumes`], its [`env`]ironment, its [`probes`], its [`hooks`]; [`references`] holds the
//! ConfigMaps and Secrets that pods name, [`downward`] tells pods about themselves. Pods whose spec
//! nobody has any more, and all pods of a machine that is to stop ([`shutdown`]), end by what was
//! written down with their containers.

pub mod actions;
pub mod admit;
pub mod backoff;
mod cgroups;
pub mod config;
pub mod downward;
mod ending;
pub mod env;
pub mod hooks;
pub mod host;
mod http_get;
mod images;
mod kubelet;
pub mod layout;
mod logs;
mod manifests;
mod mirrors;
mod node;
mod observe;
pub mod observed;
mod orphans;
pub mod parts;
mod pleg;
pub mod pod;
pub mod probes;
mod publish;
pub mod qos;
pub mod references;
pub mod requests;
pub mod roster;
pub mod server;
pub mod shutdown;
mod sources;
pub mod spec;
pub mod status;
mod sysctls;
pub mod volumes;
mod worker;

pub use config::Config;
pub use kubelet::{Kubelet, StartError, run};
pub use logs::rotation::LogRotation;
