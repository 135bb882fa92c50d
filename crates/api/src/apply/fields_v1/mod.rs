//! FieldsV1: the encoding of a field set in objects.
//!
//! `{"f:spec":{"f:ports":{"k:{\"port\":80}":{".":{},"f:name":{}}}}}`: a JSON object whose names are
//! path elements, with `.` where an element with children is a member itself. Clients and caches
//! compare the text, so [`encode`] writes upstream's, byte by byte; [`decode`] accepts whatever
//! upstream accepts.

mod decode;
mod encode;
#[cfg(test)]
mod tests;

pub use decode::{FieldsError, decode};
pub use encode::encode;
