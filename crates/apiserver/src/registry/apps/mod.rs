//! Kinds of `apps`.

pub(super) mod controller_revision;
