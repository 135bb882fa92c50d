//! The row of a Deployment.

use coracle_api::time::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;

use crate::render::table::Row;
use crate::render::table::cells::{age, name, parsed, template_containers};

pub(super) fn row(deployment: &Deployment, now: Timestamp) -> Row {
    let spec = deployment.spec.as_ref();
    let status = deployment.status.as_ref();
    let (names, images) = template_containers(spec.map(|spec| &spec.template));
    let ready = status
        .and_then(|status| status.ready_replicas)
        .unwrap_or_default();
    let wanted = spec.and_then(|spec| spec.replicas).unwrap_or_default();

    // Unlike other kinds, a deployment says nothing of an empty selector.
    let selector = parsed(spec.map(|spec| &spec.selector));

    row![
        name(&deployment.metadata),
        format!("{ready}/{wanted}"),
        status
            .and_then(|status| status.updated_replicas)
            .unwrap_or_default(),
        status
            .and_then(|status| status.available_replicas)
            .unwrap_or_default(),
        age(&deployment.metadata, now),
        names,
        images,
        selector.map_or_else(|| "<invalid>".to_string(), |selector| selector.to_string())
    ]
}
