//! The row of a VolumeAttributesClass.

use coracle_api::time::Timestamp;
use k8s_openapi::api::storage::v1::VolumeAttributesClass;

use crate::render::table::Row;
use crate::render::table::cells::{age, name};

pub(super) fn row(class: &VolumeAttributesClass, now: Timestamp) -> Row {
    row![
        name(&class.metadata),
        class.driver_name.as_str(),
        age(&class.metadata, now)
    ]
}
