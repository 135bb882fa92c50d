//! The row of a ControllerRevision.

use coracle_api::time::Timestamp;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use crate::render::table::Row;
use crate::render::table::cells::{NONE, age, name};

pub(super) fn row(revision: &ControllerRevision, now: Timestamp) -> Row {
    let mut owners = revision.metadata.owner_references.iter().flatten();
    let controller = owners.find(|owner| owner.controller == Some(true));
    row![
        name(&revision.metadata),
        controller.map_or_else(|| NONE.to_string(), qualified),
        revision.revision,
        age(&revision.metadata, now)
    ]
}

/// `statefulset.apps/web`.
fn qualified(owner: &OwnerReference) -> String {
    let kind = owner.kind.to_lowercase();
    match owner.api_version.split_once('/') {
        Some((group, _)) => format!("{kind}.{}/{}", group.to_lowercase(), owner.name),
        None => format!("{kind}/{}", owner.name),
    }
}
