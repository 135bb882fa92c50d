//! The recorded answers of a real server, played against ours.

#![expect(clippy::unwrap_used, reason = "what fails here is the test")]

mod corpus;
mod golden;
mod recorded;
