//! One node: its pods are brought up, kept running, reported and taken down.
//!
//! What the kubelet works on is the typed `Pod` of `k8s-openapi`, read through [`pod::PodView`]: it reads specs and writes
//! nothing but status, metadata of mirror pods and its own node, so nothing is lost by the typed form. A pod is known by
//! its UID everywhere ([`pod::PodId`]); names are for people and paths.
//!
//! The path of data: the pods of this node come from the API server and are kept in the [`roster`] together with what
//! the runtime says of each ([`observed`]). The rest of the crate asks these two, and the [`host`] that it all runs on;
//! where things lie on the disk is [`layout`]'s business. What a pod needs besides containers is done behind the traits
//! of [`parts`]: its volumes, its environment, its probes, its hooks.

pub mod actions;
pub mod backoff;
pub mod host;
pub mod layout;
pub mod observed;
pub mod parts;
pub mod pod;
pub mod qos;
pub mod roster;
pub mod spec;
pub mod status;
