//! The container runtime interface: how a node's agent speaks to whatever runs its containers.
//!
//! [`Runtime`] and [`Images`] are the interface, with the messages of CRI v1 ([`v1`], compiled from
//! `proto/`) as their types. The runtime in this process implements them; [`Client`] implements
//! them too, for a runtime behind a unix socket (containerd, CRI-O). Whoever calls them cannot tell
//! which it is but in one place: what streams ([`streaming`]) is an address from a foreign runtime
//! and open streams from ours.

mod client;
mod error;
mod images;
mod runtime;
pub mod streaming;

pub use client::Client;
pub use error::{Error, Result};
pub use images::Images;
pub use runtime::{Events, Runtime};

/// The messages of CRI v1. Names are upstream's.
pub mod v1 {
    #![expect(unused_qualifications, reason = "generated")]
    tonic::include_proto!("runtime.v1");
}
