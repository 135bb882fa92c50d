//! The row of a ClusterRoleBinding.

use coracle_api::time::Timestamp;
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;

use super::role_binding::named;
use crate::render::table::Row;
use crate::render::table::cells::{age, name};

pub(super) fn row(binding: &ClusterRoleBinding, now: Timestamp) -> Row {
    let subjects = binding.subjects.as_deref().unwrap_or_default();
    row![
        name(&binding.metadata),
        format!("{}/{}", binding.role_ref.kind, binding.role_ref.name),
        age(&binding.metadata, now),
        named(subjects, "User"),
        named(subjects, "Group"),
        named(subjects, "ServiceAccount")
    ]
}
