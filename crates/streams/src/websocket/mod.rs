//! WebSocket connections, which carry streams in three ways.
//!
//! [`channels`]: the first byte of every message is the number of a stream. [`tunnel`]: the
//! messages are the bytes of another protocol, SPDY. [`messages`]: one stream to the client. All
//! read and write [`frames`].

mod channels;
mod frames;
#[cfg(any(test, feature = "fuzz"))]
pub(crate) mod fuzz;
mod messages;
mod tunnel;

use std::time::Duration;

pub(crate) use channels::Outlet;
pub use channels::{Channels, Coding, channels};
pub use frames::Role;
pub use messages::{Outgoing, send_messages};
pub use tunnel::tunnel;

/// How long the peer may take to close a connection that we have finished.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// The queue length of messages to be written.
const WAITING_MESSAGES: usize = 16;
