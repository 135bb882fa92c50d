//! Kinds of `networking.k8s.io`.

pub(super) mod ingress;
pub(super) mod ingress_class;
pub(super) mod ip_address;
pub(super) mod network_policy;
pub(super) mod service_cidr;
