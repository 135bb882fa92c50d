//! What a Kubernetes object is.
//!
//! Everything that another room would otherwise write again about objects stands here; nothing in
//! here does I/O, reads a clock or throws dice: those are handed in.
//!
//! The path of data: bytes arrive in one of three forms ([`codec`]: JSON, YAML, protobuf) and
//! become a tree ([`value`]), with the [`catalog`] at hand, which knows every kind, type and field
//! as data. On the tree work the vocabulary (names, selectors, quantities, times, owners, taints
//! …), the [`defaults`] of built-in kinds and the engines that are driven by the catalogue; what
//! decides reads it through [`meta`] or as a typed struct ([`typed`]). `codec::canonical` gives the
//! tree the form upstream would write, and the codecs make bytes of it again. Refusals have
//! upstream's words ([`field_error`], [`go_text`]), because people and programs read them.
//!
//! A custom resource is a [`catalog::Page`] made at run time; it takes the same road. [`fuzz`]
//! holds what must be true of any input at all.

pub mod apply;
pub mod catalog;
pub mod certificate_subject;
pub mod codec;
pub mod convert;
pub mod cron;
pub mod defaults;
pub mod field_error;
pub mod fuzz;
pub mod gates;
pub mod go_text;
pub mod image;
pub mod int_or_string;
pub mod ip;
pub mod json_path;
pub mod meta;
pub mod names;
pub mod node_affinity;
pub mod node_label;
pub mod owner;
pub mod patch;
pub mod quantity;
pub mod quota;
pub mod resource_name;
pub mod resource_version;
pub mod schema;
pub mod selector;
pub mod taint;
pub mod time;
pub mod typed;
pub mod uid;
pub mod value;

pub use value::{Map, Path, Text, Value};
