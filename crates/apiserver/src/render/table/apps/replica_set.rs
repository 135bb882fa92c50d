//! The row of a ReplicaSet.

use coracle_api::time::Timestamp;
use k8s_openapi::api::apps::v1::ReplicaSet;

use crate::render::table::Row;
use crate::render::table::cells::{age, name, selector, template_containers};

pub(super) fn row(set: &ReplicaSet, now: Timestamp) -> Row {
    let spec = set.spec.as_ref();
    let status = set.status.as_ref();

    let (names, images) = template_containers(spec.and_then(|spec| spec.template.as_ref()));
    row![
        name(&set.metadata),
        spec.and_then(|spec| spec.replicas).unwrap_or_default(),
        status.map_or(0, |status| status.replicas),
        status
            .and_then(|status| status.ready_replicas)
            .unwrap_or_default(),
        age(&set.metadata, now),
        names,
        images,
        selector(spec.map(|spec| &spec.selector))
    ]
}
