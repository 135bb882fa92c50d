//! The row of a Lease.

use coracle_api::time::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;

use crate::render::table::Row;
use crate::render::table::cells::{age, name};

pub(super) fn row(lease: &Lease, now: Timestamp) -> Row {
    let holder = lease
        .spec
        .as_ref()
        .and_then(|spec| spec.holder_identity.as_deref());
    row![
        name(&lease.metadata),
        holder.unwrap_or_default(),
        age(&lease.metadata, now)
    ]
}
