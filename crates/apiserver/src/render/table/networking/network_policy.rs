//! The row of a NetworkPolicy.

use coracle_api::time::Timestamp;
use k8s_openapi::api::networking::v1::NetworkPolicy;

use crate::render::table::Row;
use crate::render::table::cells::{age, name, selector};

pub(super) fn row(policy: &NetworkPolicy, now: Timestamp) -> Row {
    let pods = policy
        .spec
        .as_ref()
        .and_then(|spec| spec.pod_selector.as_ref());
    row![
        name(&policy.metadata),
        selector(pods),
        age(&policy.metadata, now)
    ]
}
