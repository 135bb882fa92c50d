//! The container runtime interface (CRI).
//!
//! [`Runtime`] and [`Images`] are the interface, with the messages of CRI v1 ([`v1`], compiled from
//! `proto/`). The built-in runtime implements them; [`Client`] implements them for a remote runtime
//! on a unix socket (containerd, CRI-O). The only difference for callers is in [`streaming`]: a
//! remote runtime returns a URL, the built-in one open streams.

mod client;
mod error;
mod images;
mod runtime;
pub mod streaming;

pub use client::Client;
pub use error::{Error, Result};
pub use images::Images;
pub use runtime::{Events, Runtime};

/// The messages of CRI v1, with upstream's names.
pub mod v1 {
    #![expect(unused_qualifications, reason = "generated")]
    tonic::include_proto!("runtime.v1");
}
