//! The proxy of a node, in network namespaces that play the node, its pods and the world outside,
//! with real packets.
#![expect(clippy::unwrap_used, reason = "what fails here is the test")]
#![expect(clippy::disallowed_methods, reason = "the tests measure real time")]

mod follows;
mod forwarding;
mod packets;
mod restarts;
mod rig;
