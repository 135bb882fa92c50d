//! Kinds of `scheduling.k8s.io`.

pub(super) mod priority_class;
