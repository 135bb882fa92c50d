//! Commands and ports over one connection, as `kubectl exec`, `attach`, `cp` and `port-forward`
//! speak them.
//!
//! A client asks to leave HTTP ([`upgrade`]) for SPDY/3.1 ([`spdy`]) or WebSocket ([`websocket`]).
//! Either way several streams share the connection: those of a command ([`remote_command`]: input,
//! output, errors, the size of the terminal, how it ended) or those of forwarded ports
//! ([`port_forward`]: data and error for every connection). What comes is read from a [`Receiver`],
//! what goes is given to a [`Sender`]; which protocol carries it they do not tell.
//!
//! A connection is a handle and a driver: the handle says what is to happen, the driver is the
//! future in which bytes come and go, and belongs to whoever opened the connection ([`drive`] runs
//! it beside the work). Everything is bounded: who does not read what has come lets the peer wait,
//! never memory grow.

mod pipe;
pub mod port_forward;
pub mod remote_command;
pub mod spdy;
pub mod upgrade;
pub mod websocket;

pub use pipe::{Gone, Receiver, Sender, drive, drive_to_the_end};
