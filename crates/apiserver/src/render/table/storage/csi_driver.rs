//! The row of a CSIDriver.

use coracle_api::time::Timestamp;
use k8s_openapi::api::storage::v1::CSIDriver;

use crate::render::table::Row;
use crate::render::table::cells::{NONE, UNSET, age, name, or};

pub(super) fn row(driver: &CSIDriver, now: Timestamp) -> Row {
    let spec = &driver.spec;
    let audiences = spec.token_requests.as_ref().map(|requests| {
        requests
            .iter()
            .map(|request| request.audience.as_str())
            .collect::<Vec<_>>()
            .join(",")
    });

    let modes = spec
        .volume_lifecycle_modes
        .as_deref()
        .unwrap_or_default()
        .join(",");

    row![
        name(&driver.metadata),
        spec.attach_required.unwrap_or(true),
        spec.pod_info_on_mount.unwrap_or_default(),
        spec.storage_capacity.unwrap_or_default(),
        audiences.unwrap_or_else(|| UNSET.to_string()),
        spec.requires_republish.unwrap_or_default(),
        or(Some(&modes), NONE),
        age(&driver.metadata, now)
    ]
}
