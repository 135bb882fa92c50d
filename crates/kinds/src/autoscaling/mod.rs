//! Kinds of `autoscaling`.

pub(crate) mod horizontal_pod_autoscaler;
#[cfg(test)]
mod print_tests;
pub mod scale;
