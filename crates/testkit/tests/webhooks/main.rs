//! Webhooks that the server calls, as HTTPS servers of the test: well-behaved ones, and ones that
//! attack.

#![expect(clippy::unwrap_used, reason = "what fails here is the test")]

mod admission;
mod admission_load;
mod conversion;
