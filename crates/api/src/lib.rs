//! What a Kubernetes object is.
//!
//! This crate is the vocabulary of the house; it does no I/O.

pub mod catalog;
pub mod value;

pub use value::{Map, Path, Text, Value};
