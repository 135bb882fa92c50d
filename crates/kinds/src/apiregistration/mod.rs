//! Kinds of the group `apiregistration.k8s.io`.

pub(crate) mod api_service;
#[cfg(test)]
mod print_tests;
