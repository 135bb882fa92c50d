//! Objects as bytes: JSON, YAML and protobuf, each to and from the tree.

pub mod any;
pub mod canonical;
pub mod json;
pub mod media_type;
pub mod protobuf;
mod scalar;
pub mod yaml;
