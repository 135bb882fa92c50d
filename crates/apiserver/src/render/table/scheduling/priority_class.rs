//! The row of a PriorityClass.

use coracle_api::time::Timestamp;
use k8s_openapi::api::scheduling::v1::PriorityClass;

use crate::render::table::Row;
use crate::render::table::cells::{age, name};

pub(super) fn row(class: &PriorityClass, now: Timestamp) -> Row {
    row![
        name(&class.metadata),
        class.value.unwrap_or_default(),
        class.global_default.unwrap_or_default(),
        age(&class.metadata, now),
        class.preemption_policy.as_deref().unwrap_or_default()
    ]
}
