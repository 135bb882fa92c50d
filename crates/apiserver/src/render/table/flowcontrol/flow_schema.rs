//! The row of a FlowSchema.

use coracle_api::time::Timestamp;
use k8s_openapi::api::flowcontrol::v1::FlowSchema;

use crate::render::table::Row;
use crate::render::table::cells::{NONE, age, name};

pub(super) fn row(schema: &FlowSchema, now: Timestamp) -> Row {
    let spec = schema.spec.as_ref();
    let method = spec.and_then(|spec| spec.distinguisher_method.as_ref());

    let mut conditions = schema
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    let dangling = conditions.find(|condition| condition.type_.as_deref() == Some("Dangling"));

    row![
        name(&schema.metadata),
        spec.map_or("", |spec| &spec.priority_level_configuration.name),
        spec.and_then(|spec| spec.matching_precedence)
            .unwrap_or_default(),
        method.map_or(NONE, |method| &method.type_),
        age(&schema.metadata, now),
        dangling.map_or("?", |condition| condition
            .status
            .as_deref()
            .unwrap_or_default())
    ]
}
