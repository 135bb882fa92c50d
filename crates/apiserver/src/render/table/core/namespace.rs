//! The row of a Namespace.

use coracle_api::time::Timestamp;
use k8s_openapi::api::core::v1::Namespace;

use crate::render::table::Row;
use crate::render::table::cells::{age, name};

pub(super) fn row(namespace: &Namespace, now: Timestamp) -> Row {
    let phase = namespace
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    row![
        name(&namespace.metadata),
        phase.unwrap_or_default(),
        age(&namespace.metadata, now)
    ]
}
