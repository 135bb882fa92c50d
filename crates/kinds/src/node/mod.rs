//! Kinds of `node.k8s.io`.

#[cfg(test)]
mod print_tests;
pub(crate) mod runtime_class;
