//! Tests of the public API of the crate, most of them against recorded answers of a real server.
//!
//! One program for all of them: each test program links the whole crate.

#![expect(clippy::unwrap_used, reason = "what fails here is the test")]

mod apply_golden;
mod apply_properties;
mod convert;
mod corpus_decode;
mod defaults;
mod discovery;
mod fuzz_corpus;
mod gates;
mod patch_golden;
mod patch_properties;
mod properties;
mod recorded;
mod roundtrip;
mod schema_corpus;
mod yaml_fixtures;
