//! Kinds of the group `apiregistration.k8s.io`.

pub(super) mod api_service;
