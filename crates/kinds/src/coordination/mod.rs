//! Kinds of `coordination.k8s.io`.

pub(crate) mod lease;
#[cfg(test)]
mod print_tests;
