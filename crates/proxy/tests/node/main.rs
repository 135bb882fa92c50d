//! The proxy with real packets, in network namespaces that simulate a node, its pods and an
//! external client.
#![expect(clippy::unwrap_used, reason = "what fails here is the test")]
#![expect(clippy::disallowed_methods, reason = "the tests measure real time")]

mod api_changes;
mod forwarding;
mod packets;
mod restarts;
mod rig;
