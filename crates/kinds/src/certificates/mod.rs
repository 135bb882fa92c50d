//! Kinds of `certificates.k8s.io`.

pub(crate) mod certificate_signing_request;
mod pem;
#[cfg(test)]
mod print_tests;
mod signer_name;
