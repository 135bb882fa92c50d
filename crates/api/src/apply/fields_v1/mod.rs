//! FieldsV1: a set of fields as objects carry it.
//!
//! `{"f:spec":{"f:ports":{"k:{\"port\":80}":{".":{},"f:name":{}}}}}`: a JSON object whose names are
//! the steps, with `.` where a step that leads on is a member itself. Clients and caches compare
//! the text, so [`encode`] writes upstream's, byte by byte; [`decode`] takes whatever upstream
//! takes.

mod decode;
mod encode;
#[cfg(test)]
mod tests;

pub use decode::{FieldsError, decode};
pub use encode::encode;
