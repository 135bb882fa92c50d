//! Objects as bytes: JSON, YAML, protobuf and CBOR, each to and from the tree.

pub mod any;
pub mod canonical;
pub mod cbor;
pub mod json;
pub mod media_type;
pub mod protobuf;
mod scalar;
pub mod yaml;
