//! The row of a ServiceCIDR.

use coracle_api::time::Timestamp;
use k8s_openapi::api::networking::v1::ServiceCIDR;

use crate::render::table::Row;
use crate::render::table::cells::{age, name};

pub(super) fn row(range: &ServiceCIDR, now: Timestamp) -> Row {
    let cidrs = range
        .spec
        .as_ref()
        .and_then(|spec| spec.cidrs.as_deref())
        .unwrap_or_default();
    row![
        name(&range.metadata),
        cidrs.join(","),
        age(&range.metadata, now)
    ]
}
