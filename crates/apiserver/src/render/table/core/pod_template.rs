//! The row of a PodTemplate.

use k8s_openapi::api::core::v1::PodTemplate;

use crate::render::table::Row;
use crate::render::table::cells::{labels, name, template_containers};

pub(super) fn row(template: &PodTemplate) -> Row {
    let (names, images) = template_containers(template.template.as_ref());
    let metadata = template
        .template
        .as_ref()
        .and_then(|template| template.metadata.as_ref());
    row![
        name(&template.metadata),
        names,
        images,
        labels(metadata.and_then(|meta| meta.labels.as_ref()))
    ]
}
