//! The row of a ConfigMap.

use coracle_api::time::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;

use crate::render::table::Row;
use crate::render::table::cells::{age, count, name};

pub(super) fn row(config: &ConfigMap, now: Timestamp) -> Row {
    let entries =
        config.data.iter().flatten().count() + config.binary_data.iter().flatten().count();
    row![
        name(&config.metadata),
        count(entries),
        age(&config.metadata, now)
    ]
}
