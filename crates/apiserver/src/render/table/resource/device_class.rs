//! The row of a DeviceClass.

use coracle_api::time::Timestamp;
use k8s_openapi::api::resource::v1::DeviceClass;

use crate::render::table::Row;
use crate::render::table::cells::{age, name};

pub(super) fn row(class: &DeviceClass, now: Timestamp) -> Row {
    row![name(&class.metadata), age(&class.metadata, now)]
}
