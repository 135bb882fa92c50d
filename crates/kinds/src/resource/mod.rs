//! Kinds of `resource.k8s.io`.

pub(crate) mod device_class;
#[cfg(test)]
mod print_tests;
pub(crate) mod resource_claim;
pub(crate) mod resource_claim_template;
pub(crate) mod resource_slice;
