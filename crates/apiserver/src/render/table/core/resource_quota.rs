//! The row of a ResourceQuota: what is used of what there is, limits apart.

use coracle_api::time::Timestamp;
use k8s_openapi::api::core::v1::ResourceQuota;

use crate::render::table::Row;
use crate::render::table::cells::{age, name, quantity};

pub(super) fn row(quota: &ResourceQuota, now: Timestamp) -> Row {
    let status = quota.status.as_ref();
    let hard = status
        .and_then(|status| status.hard.as_ref())
        .into_iter()
        .flatten();

    let used = |resource: &str| status.and_then(|status| status.used.as_ref()?.get(resource));
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (resource, hard) in hard {
        let column = if resource.starts_with("limits.") {
            &mut limits
        } else {
            &mut requests
        };

        column.push(format!(
            "{resource}: {}/{}",
            quantity(used(resource)),
            quantity(Some(hard))
        ));
    }

    row![
        name(&quota.metadata),
        requests.join(", "),
        limits.join(", "),
        age(&quota.metadata, now)
    ]
}
