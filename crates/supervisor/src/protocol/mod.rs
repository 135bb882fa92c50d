//! The messages between a runtime and a supervisor, version 1.
//!
//! The runtime sends a [`Request`] with a number of its choice; the supervisor answers with a
//! [`Reply`] of the same number, in any order. What nobody asked for (an exit) is a reply with the
//! number 0.
//!
//! A supervisor keeps the version it was born with, which [`Reply::Welcome`] names, and understands
//! all earlier ones. A runtime speaks every version that was ever released: it says to a supervisor
//! only what there was in the supervisor's version, and is told nothing that there was not in
//! version 1 unless it has asked for it; what it does not understand it passes over. So either may
//! be the newer one. For this, words that were released never change (`tests/frozen.rs` has their
//! bytes): a request or record with other fields is another one, with a tag of its own.

pub mod held;
mod keep;
mod message;
mod spec;
mod wire;

pub use held::Held;
pub use keep::{Belongings, FromKeeper, ToKeeper};
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
