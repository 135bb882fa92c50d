//! The container runtime: the service behind the container runtime interface, in this process.
//!
//! Images are pulled, stored and unpacked in [`images`], and mounted in [`rootfs`].
//!
//! A pod ([`sandbox`]) is a set of pinned namespaces, a network and a supervisor. A container
//! ([`container`]) is a root filesystem ([`ports`]) with the volumes that its image declares
//! ([`volumes`]), a cgroup, and a process whose parent is the pod's supervisor; [`spec`] computes
//! its specification. A restart loses nothing: the requested state is on disk ([`records`]), the
//! running state is in the supervisors ([`supervise`]), and [`recover`] combines both. This process
//! never forks.

mod clock;
mod config;
mod container;
mod error;
mod events;
mod filter;
mod forwarded_ports;
#[cfg(test)]
#[path = "../../../fuzz/run_corpus.rs"]
mod fuzz_corpus;
mod ids;
pub mod images;
mod namespaces;
mod node;
mod observe;
pub mod ports;
mod records;
mod recover;
pub mod rootfs;
mod sandbox;
mod service;
mod spec;
mod stats;
mod streams;
mod supervise;
mod sys;
mod volumes;

pub use config::{Config, OpenFiles};
pub use error::Error;
pub use observe::Observer;
pub use ports::{ImageConfig, ImageForContainer, RootFs, RootFsError, RootFsUsage};
pub use service::Runtime;
