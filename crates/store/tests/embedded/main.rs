//! Tests of the embedded store on real files.
//!
//! One program for all of them: each test program links the whole crate.

mod commands;
mod contract;
mod kill;
