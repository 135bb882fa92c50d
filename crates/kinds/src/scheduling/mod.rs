//! Kinds of `scheduling.k8s.io`.

pub(crate) mod pod_group;
mod pod_group_spec;
#[cfg(test)]
mod print_tests;
pub(crate) mod priority_class;
pub(crate) mod workload;
