//! SPDY/3.1, as far as `kubectl` and its servers use it: streams that either side opens,
//! half-closes and resets.
//!
//! The one other implementation there is (in Go, inside every stock client) neither keeps to
//! windows nor ever widens them. So windows are not used here either: a peer that sends faster than
//! somebody reads waits because we stop reading from the connection.

mod connection;
mod frame;
mod headers;
mod reading;

pub(crate) use connection::Outlet;
pub use connection::{Connection, Cut, Error, Incoming, Side, Stream, open};
pub use frame::FrameError;
pub use headers::{HeaderError, Headers};
