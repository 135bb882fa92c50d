//! Kinds of `apiextensions.k8s.io`.

pub(super) mod custom_resource_definition;
