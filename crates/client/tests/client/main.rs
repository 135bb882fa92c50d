//! Tests of the client against API servers in this process.
//!
//! One program for all of them: each test program links the whole crate.

#![expect(clippy::unwrap_used, reason = "what fails here is the test")]

mod consistency;
mod election;
mod faulty;
mod in_pod;
mod informers;
mod proxy;
mod requests;
mod shared;
