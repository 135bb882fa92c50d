//! The downward API: what a pod is told about itself, in variables and in files.
//!
//! `fields` are those of the pod (its name, its labels, its addresses), `resources` the requests
//! and limits of its containers. Pure: what the pod does not know itself (its addresses, its node's
//! size) is handed in.

mod fields;
mod resources;

use std::collections::BTreeMap;

use coracle_api::go_text::Quoted;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

pub use fields::{PodAddresses, field_of_metadata, field_of_pod};
pub use resources::{Allocatable, resource_of_container};

/// Amounts by the name of the resource, as objects carry them.
pub type Amounts = BTreeMap<String, Quantity>;

/// Why there is no such value. The texts are upstream's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DownwardError {
    #[error("unsupported pod version: {0}")]
    Version(String),
    #[error("field label not supported: {0}")]
    Label(String),
    #[error("field label does not support subscript: {0}")]
    LabelSubscript(String),
    #[error("unsupported fieldPath: {0}")]
    Path(String),
    #[error("fieldPath {} does not support subscript", Quoted(.0))]
    PathSubscript(String),
    #[error("invalid key subscript in {path}: {reasons}")]
    Subscript { path: String, reasons: String },
    #[error("container {0} not found")]
    Container(String),
    #[error("unsupported container resource : {0}")]
    Resource(String),
    #[error("{name}: {reason}")]
    Amount { name: String, reason: String },
}
