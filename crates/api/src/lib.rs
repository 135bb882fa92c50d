//! The Kubernetes object model.
//!
//! Everything about objects that several crates need is here; nothing in here does I/O, reads a
//! clock or generates random numbers: these are passed in.
//!
//! The flow of data: bytes arrive in one of three forms ([`codec`]: JSON, YAML, protobuf) and are
//! decoded into a tree ([`value`]), driven by the [`catalog`], which describes every kind, type and
//! field as data. The tree is processed by the vocabulary (names, selectors, quantities, times,
//! owners, taints …), the [`defaults`] of built-in kinds and the engines that the catalogue drives;
//! code that decides reads it through [`meta`] or as a typed struct ([`typed`]). `codec::canonical`
//! brings the tree into the form upstream would write, and the codecs encode it again. Errors have
//! upstream's texts ([`field_error`], [`go_text`]), because clients parse them.
//!
//! A custom resource is a [`catalog::Page`] built at run time, and is processed the same way.
//! [`fuzz`] has the properties that hold for any input.

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
