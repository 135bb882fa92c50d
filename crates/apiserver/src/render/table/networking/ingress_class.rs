//! The row of an IngressClass.

use coracle_api::time::Timestamp;
use k8s_openapi::api::networking::v1::{IngressClass, IngressClassParametersReference};

use crate::render::table::Row;
use crate::render::table::cells::{NONE, age, name_of_default};

pub(super) fn row(class: &IngressClass, now: Timestamp) -> Row {
    let spec = class.spec.as_ref();
    let parameters = spec.and_then(|spec| spec.parameters.as_ref());
    row![
        name_of_default(
            &class.metadata,
            &["ingressclass.kubernetes.io/is-default-class"]
        ),
        spec.and_then(|spec| spec.controller.as_deref())
            .unwrap_or_default(),
        parameters.map_or_else(|| NONE.to_string(), reference),
        age(&class.metadata, now)
    ]
}

/// `Kind.group/name`.
fn reference(to: &IngressClassParametersReference) -> String {
    match &to.api_group {
        Some(group) => format!("{}.{group}/{}", to.kind, to.name),
        None => format!("{}/{}", to.kind, to.name),
    }
}
