//! Kinds of the core group.

pub(super) mod namespace;
pub(super) mod pod;
