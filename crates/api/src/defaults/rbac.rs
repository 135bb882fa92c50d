//! Role bindings.

use crate::Map;
use crate::time::Timestamp;

/// Subjects: users and groups belong to the RBAC API group; service accounts to the core group.
pub(super) fn binding(object: &mut Map, _: Timestamp) {
    for subject in object.structs_mut("subjects") {
        if matches!(subject.text("kind"), "User" | "Group") {
            subject.set_if_empty("apiGroup", "rbac.authorization.k8s.io");
        }
    }
}
