//! The row of a StatefulSet.

use coracle_api::time::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;

use crate::render::table::Row;
use crate::render::table::cells::{age, name, template_containers};

pub(super) fn row(set: &StatefulSet, now: Timestamp) -> Row {
    let spec = set.spec.as_ref();
    let (names, images) = template_containers(spec.map(|spec| &spec.template));
    let ready = set
        .status
        .as_ref()
        .and_then(|status| status.ready_replicas)
        .unwrap_or_default();

    let wanted = spec.and_then(|spec| spec.replicas).unwrap_or_default();
    row![
        name(&set.metadata),
        format!("{ready}/{wanted}"),
        age(&set.metadata, now),
        names,
        images
    ]
}
