//! Counts the bytes that are in use.

pub(crate) mod sys;
