//! The row of a PriorityLevelConfiguration.

use coracle_api::Value;
use coracle_api::time::Timestamp;
use k8s_openapi::api::flowcontrol::v1::PriorityLevelConfiguration;

use crate::render::table::Row;
use crate::render::table::cells::{NONE, age, name};

pub(super) fn row(level: &PriorityLevelConfiguration, now: Timestamp) -> Row {
    let spec = level.spec.as_ref();
    let limited = spec.and_then(|spec| spec.limited.as_ref());
    let shares = limited.map(|limited| limited.nominal_concurrency_shares.unwrap_or_default());
    let response = limited.and_then(|limited| limited.limit_response.as_ref());
    let queuing = response.and_then(|response| response.queuing.as_ref());
    let number = |number: Option<i32>| number.map_or_else(|| Value::from(NONE), Value::from);

    row![
        name(&level.metadata),
        spec.map_or("", |spec| &spec.type_),
        number(shares),
        number(queuing.map(|queuing| queuing.queues.unwrap_or_default())),
        number(queuing.map(|queuing| queuing.hand_size.unwrap_or_default())),
        number(queuing.map(|queuing| queuing.queue_length_limit.unwrap_or_default())),
        age(&level.metadata, now)
    ]
}
