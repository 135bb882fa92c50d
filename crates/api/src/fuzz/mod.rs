//! Properties that hold for any input: one function per fuzz target, which panics on a violation.
//!
//! The targets of `fuzz/` call these with generated inputs; `tests/fuzz_corpus.rs` calls them with
//! the stored inputs, and with mutations of those. [`steps`] counts the work that an input causes.

mod apply;
mod codecs;
pub mod objects;
mod patches;
mod schemas;
pub mod steps;
mod vocabulary;
mod yaml;

pub use apply::{apply, fields_v1};
pub use codecs::{json, protobuf};
pub use patches::{json_patch, strategic_merge};
pub use schemas::schema;
pub use vocabulary::{quantities, selectors};
pub use yaml::yaml;
