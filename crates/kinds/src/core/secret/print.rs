//! The row of a Secret: the number of its keys, never the values.

use coracle_api::time::Timestamp;
use k8s_openapi::api::core::v1::Secret;

use crate::print::Row;
use crate::print::cells::{age, count, name};

pub(super) fn print_row(secret: &Secret, now: Timestamp) -> Row {
    row![
        name(&secret.metadata),
        secret.type_.as_deref().unwrap_or_default(),
        count(secret.data.iter().flatten().count()),
        age(&secret.metadata, now)
    ]
}
