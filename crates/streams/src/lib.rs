//! The streaming protocols of `kubectl exec`, `attach`, `cp` and `port-forward`.
//!
//! A client upgrades from HTTP ([`upgrade`]) to SPDY/3.1 ([`spdy`]) or WebSocket ([`websocket`]).
//! Either way several streams share the connection: those of a command ([`remote_command`]: stdin,
//! stdout, stderr, terminal size, exit status) or those of forwarded ports ([`port_forward`]: data
//! and error for every connection). Streams are read from a [`Receiver`] and written to a
//! [`Sender`], independent of the protocol.
//!
//! A connection is a handle and a driver: the driver is the future that does the I/O, and is owned
//! by the opener of the connection ([`drive`] runs it beside the work). Everything is bounded:
//! unread data makes the peer wait, and never grows memory.

#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
#[cfg(test)]
#[path = "../../../fuzz/run_corpus.rs"]
mod fuzz_corpus;
mod pipe;
pub mod port_forward;
pub mod remote_command;
pub mod spdy;
pub mod upgrade;
pub mod websocket;

pub use pipe::{Gone, Receiver, Sender, drive, drive_to_the_end};
