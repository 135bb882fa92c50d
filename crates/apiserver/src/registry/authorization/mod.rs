//! Kinds of `authorization.k8s.io`: questions about what somebody may do.

pub(super) mod access_review;
pub(super) mod rules_review;
mod validate;
