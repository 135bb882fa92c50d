//! The row of a Scale.

use coracle_api::time::Timestamp;
use k8s_openapi::api::autoscaling::v1::Scale;

use crate::render::table::Row;
use crate::render::table::cells::{age, name};

pub(super) fn row(scale: &Scale, now: Timestamp) -> Row {
    row![
        name(&scale.metadata),
        scale
            .spec
            .as_ref()
            .and_then(|spec| spec.replicas)
            .unwrap_or_default(),
        scale.status.as_ref().map_or(0, |status| status.replicas),
        age(&scale.metadata, now)
    ]
}
