//! The row of a ServiceAccount.

use coracle_api::time::Timestamp;
use k8s_openapi::api::core::v1::ServiceAccount;

use crate::render::table::Row;
use crate::render::table::cells::{age, name};

pub(super) fn row(account: &ServiceAccount, now: Timestamp) -> Row {
    row![name(&account.metadata), age(&account.metadata, now)]
}
