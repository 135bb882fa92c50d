//! The row of a ResourceClaimTemplate.

use coracle_api::time::Timestamp;
use k8s_openapi::api::resource::v1::ResourceClaimTemplate;

use crate::render::table::Row;
use crate::render::table::cells::{age, name};

pub(super) fn row(template: &ResourceClaimTemplate, now: Timestamp) -> Row {
    row![name(&template.metadata), age(&template.metadata, now)]
}
