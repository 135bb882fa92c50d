//! Kinds of `certificates.k8s.io`.

pub(super) mod certificate_signing_request;
mod pem;
mod signer_name;
