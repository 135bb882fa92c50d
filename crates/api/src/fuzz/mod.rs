//! What must hold for any input whatever: one function per target, which panics on a broken
//! property.
//!
//! The targets of `fuzz/` call these with inputs that a fuzzer invents; `tests/fuzz_corpus.rs`
//! calls them with the inputs that are kept, and with changes of those. [`steps`] counts what an
//! input costs.

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
