//! The row of a RoleBinding.

use coracle_api::time::Timestamp;
use k8s_openapi::api::rbac::v1::{RoleBinding, Subject};

use crate::render::table::Row;
use crate::render::table::cells::{age, name};

pub(super) fn row(binding: &RoleBinding, now: Timestamp) -> Row {
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

/// The names of all subjects of a kind. Service accounts are in a namespace.
pub(super) fn named(subjects: &[Subject], kind: &str) -> String {
    let names = subjects
        .iter()
        .filter(|subject| subject.kind == kind)
        .map(|subject| match kind {
            "ServiceAccount" => {
                format!(
                    "{}/{}",
                    subject.namespace.as_deref().unwrap_or_default(),
                    subject.name
                )
            }
            _ => subject.name.clone(),
        });

    names.collect::<Vec<_>>().join(", ")
}
