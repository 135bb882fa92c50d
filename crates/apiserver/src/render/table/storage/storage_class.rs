//! The row of a StorageClass.

use coracle_api::time::Timestamp;
use k8s_openapi::api::storage::v1::StorageClass;

use crate::render::table::Row;
use crate::render::table::cells::{age, name_of_default};

pub(super) fn row(class: &StorageClass, now: Timestamp) -> Row {
    let marks = [
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
    ];

    row![
        name_of_default(&class.metadata, &marks),
        class.provisioner.as_str(),
        class.reclaim_policy.as_deref().unwrap_or("Delete"),
        class.volume_binding_mode.as_deref().unwrap_or("Immediate"),
        class.allow_volume_expansion.unwrap_or_default(),
        age(&class.metadata, now)
    ]
}
