//! The downward API: information about a pod in its environment variables and files.
//!
//! `fields` are fields of the pod (name, labels, addresses), `resources` the requests and limits of
//! its containers. Pure: values that the pod object lacks (addresses, node size) are arguments.

mod fields;
mod resources;

use std::collections::BTreeMap;

use coracle_api::go_text::Quoted;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

pub use fields::{PodAddresses, field_of_metadata, field_of_pod};
pub use resources::{Allocatable, resource_of_container};

/// Amounts by resource name, as API objects hold them.
pub type Amounts = BTreeMap<String, Quantity>;

/// Why a value does not exist. The texts are upstream's.
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
