//! What a request asks for: its path taken apart, its query read. Pure.

mod info;
mod options;
mod query;

pub use info::{RequestInfo, Target};
pub use options::{
    DeleteOptions, FieldValidation, ListOptions, Propagation, VersionMatch, WriteOptions,
};
pub use query::Query;
pub(crate) use query::decode_path;
