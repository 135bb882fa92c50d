//! Kinds of `certificates.k8s.io`.

pub(crate) mod certificate_signing_request;
pub(crate) mod cluster_trust_bundle;
mod pem;
mod pem_blocks;
pub(crate) mod pod_certificate_request;
#[cfg(test)]
mod print_tests;
mod signer_name;
