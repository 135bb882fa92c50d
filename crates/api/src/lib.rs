//! What a Kubernetes object is.
//!
//! This crate is the vocabulary of the house; it does no I/O.

pub mod catalog;
pub mod codec;
pub mod field_error;
pub mod fuzz;
pub mod go_text;
pub mod int_or_string;
pub mod meta;
pub mod names;
pub mod node_affinity;
pub mod owner;
pub mod quantity;
pub mod resource_version;
pub mod selector;
pub mod taint;
pub mod time;
pub mod uid;
pub mod typed;
pub mod value;

pub use value::{Map, Path, Text, Value};
