//! Kinds of `apiextensions.k8s.io`, and those that they define.

mod custom_resource;
pub(super) mod custom_resource_definition;
