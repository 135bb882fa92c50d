//! Kinds of `scheduling.k8s.io`.

#[cfg(test)]
mod print_tests;
pub(crate) mod priority_class;
