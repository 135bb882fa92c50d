//! The row of a ReplicationController.

use coracle_api::time::Timestamp;
use k8s_openapi::api::core::v1::ReplicationController;

use crate::render::table::Row;
use crate::render::table::cells::{age, labels, name, template_containers};

pub(super) fn row(controller: &ReplicationController, now: Timestamp) -> Row {
    let spec = controller.spec.as_ref();
    let status = controller.status.as_ref();

    let (names, images) = template_containers(spec.and_then(|spec| spec.template.as_ref()));
    row![
        name(&controller.metadata),
        spec.and_then(|spec| spec.replicas).unwrap_or_default(),
        status.map_or(0, |status| status.replicas),
        status
            .and_then(|status| status.ready_replicas)
            .unwrap_or_default(),
        age(&controller.metadata, now),
        names,
        images,
        labels(spec.and_then(|spec| spec.selector.as_ref()))
    ]
}
