//! The row of a DaemonSet.

use coracle_api::time::Timestamp;
use k8s_openapi::api::apps::v1::DaemonSet;

use crate::render::table::Row;
use crate::render::table::cells::{age, labels, name, selector, template_containers};

pub(super) fn row(set: &DaemonSet, now: Timestamp) -> Row {
    let spec = set.spec.as_ref();
    let status = set.status.as_ref();
    let template = spec.map(|spec| &spec.template);
    let pod = template.and_then(|template| template.spec.as_ref());
    let (names, images) = template_containers(template);

    row![
        name(&set.metadata),
        status.map_or(0, |status| status.desired_number_scheduled),
        status.map_or(0, |status| status.current_number_scheduled),
        status.map_or(0, |status| status.number_ready),
        status
            .and_then(|status| status.updated_number_scheduled)
            .unwrap_or_default(),
        status
            .and_then(|status| status.number_available)
            .unwrap_or_default(),
        labels(pod.and_then(|pod| pod.node_selector.as_ref())),
        age(&set.metadata, now),
        names,
        images,
        selector(spec.map(|spec| &spec.selector))
    ]
}
