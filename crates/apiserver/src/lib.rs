//! One request from TLS to bytes.

pub mod answer;
pub mod authn;
pub mod cache;
pub mod discovery;
pub mod handler;
pub mod registry;
pub mod request;
pub mod serve;
pub mod status;

pub use status::ApiError;
