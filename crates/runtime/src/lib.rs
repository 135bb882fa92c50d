//! The container runtime: the service behind the container runtime interface, in this process.
//!
//! Images are pulled, kept and unpacked in [`images`], and mounted in [`rootfs`].
//!
//! A pod ([`sandbox`]) is a set of pinned namespaces, a network and a supervisor. A container
//! ([`container`]) is a root filesystem ([`ports`]) with the volumes that its image wants
//! ([`volumes`]), a cgroup, and a process that the pod's supervisor holds; what it is to be is
//! decided in [`spec`]. This process holds nothing that a restart would lose: what was asked for is
//! on the disk ([`records`]), what runs is in the supervisors ([`supervise`]), and [`recover`] puts
//! both together again. It never forks.

mod clock;
mod config;
mod container;
mod error;
mod events;
mod filter;
mod forwarded_ports;
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
