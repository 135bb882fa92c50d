//! Kinds of `networking.k8s.io`.

pub(crate) mod ingress;
pub(crate) mod ingress_class;
pub(crate) mod ip_address;
pub(crate) mod network_policy;
#[cfg(test)]
mod print_tests;
pub(crate) mod service_cidr;
