//! The row of an IPAddress.

use coracle_api::time::Timestamp;
use k8s_openapi::api::networking::v1::{IPAddress, ParentReference};

use crate::render::table::Row;
use crate::render::table::cells::{NONE, age, name};

pub(super) fn row(address: &IPAddress, now: Timestamp) -> Row {
    let parent = Some(&address.spec.parent_ref).filter(|parent| !parent.resource.is_empty());
    row![
        name(&address.metadata),
        parent.map_or_else(|| NONE.to_string(), reference),
        // Upstream has this cell and no column for it.
        age(&address.metadata, now)
    ]
}

/// `services/default/kubernetes`.
fn reference(to: &ParentReference) -> String {
    let mut text = to.resource.to_lowercase();
    if let Some(group) = to.group.as_deref().filter(|group| !group.is_empty()) {
        text = format!("{text}.{}", group.to_lowercase());
    }
    match to.namespace.as_deref().unwrap_or_default() {
        "" => format!("{text}/{}", to.name),
        namespace => format!("{text}/{namespace}/{}", to.name),
    }
}
