//! The row of a RuntimeClass.

use coracle_api::time::Timestamp;
use k8s_openapi::api::node::v1::RuntimeClass;

use crate::render::table::Row;
use crate::render::table::cells::{age, name};

pub(super) fn row(class: &RuntimeClass, now: Timestamp) -> Row {
    row![
        name(&class.metadata),
        class.handler.as_str(),
        age(&class.metadata, now)
    ]
}
