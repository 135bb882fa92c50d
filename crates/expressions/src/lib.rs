//! Where Kubernetes has CEL expressions: what they see, what they must return, what they may cost.
//!
//! The language is [`coracle_cel`]; here is what its users declare. [`declared`] turns a schema into
//! types and sizes. [`custom_resource`] compiles and evaluates the rules of custom resources,
//! [`admission`] what policies and webhooks say, [`device_selector`] which devices a claim accepts. No
//! I/O.

pub mod admission;
pub mod custom_resource;
pub mod declared;
pub mod device_selector;
