//! Kinds of `apiextensions.k8s.io`.

pub mod custom_resource_definition;
