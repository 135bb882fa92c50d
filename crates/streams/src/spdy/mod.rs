//! SPDY/3.1, as far as `kubectl` and its servers use it: streams that either side opens,
//! half-closes and resets.
//!
//! The only other implementation (in Go, inside every stock client) neither respects flow-control
//! windows nor updates them. So windows are not used here either: a peer that sends faster than the
//! data is read waits because we stop reading from the connection.

mod connection;
mod frame;
#[cfg(any(test, feature = "fuzz"))]
pub(crate) mod fuzz;
mod headers;
mod reading;

pub(crate) use connection::Outlet;
pub use connection::{Connection, Cut, Error, Incoming, Side, Stream, open};
pub use frame::FrameError;
pub use headers::{HeaderError, Headers};
