//! The messages between a runtime and a supervisor, version 1.
//!
//! The runtime sends a [`Request`] with a number of its choice; the supervisor answers with a
//! [`Reply`] of the same number, in any order. An unsolicited message (an exit) is a reply with the
//! number 0.
//!
//! A supervisor keeps the version it was started with, which [`Reply::Welcome`] reports, and
//! understands all earlier ones. A runtime speaks every released version: it sends only messages of
//! the supervisor's version, and a supervisor sends nothing newer than version 1 unless the runtime
//! asked for it; unknown messages are ignored. So either side may be newer. Released messages
//! therefore never change (`tests/frozen.rs` has their bytes): a request or record with other
//! fields is a new one, with its own tag.

pub mod held;
mod keeper;
mod message;
mod spec;
mod wire;

pub use held::Held;
pub use keeper::{Belongings, FromKeeper, ToKeeper};
pub use message::{
    ContainerReport, Exit, Failure, FromRuntime, FromSupervisor, Phase, Reply, Request,
};
pub use spec::{
    Bind, Capabilities, ContainerSpec, Device, ExecSpec, Filesystem, Join, MountSpec, Namespaces,
    OomCounter, Pid, Process, Propagation, ResourceLimit,
};
pub use wire::{Malformed, Wire, decode, encode};

/// The version of the protocol that this code speaks.
pub const VERSION: u32 = 1;
