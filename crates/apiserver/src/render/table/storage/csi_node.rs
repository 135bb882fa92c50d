//! The row of a CSINode.

use coracle_api::time::Timestamp;
use k8s_openapi::api::storage::v1::CSINode;

use crate::render::table::Row;
use crate::render::table::cells::{age, count, name};

pub(super) fn row(node: &CSINode, now: Timestamp) -> Row {
    row![
        name(&node.metadata),
        count(node.spec.drivers.len()),
        age(&node.metadata, now)
    ]
}
