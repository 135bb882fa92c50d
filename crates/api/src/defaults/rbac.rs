//! Bindings of roles.

use crate::Map;
use crate::time::Timestamp;

/// Users and groups are names of the authorization API; service accounts are objects of the core
/// group.
pub(super) fn binding(object: &mut Map, _: Timestamp) {
    for subject in object.structs_mut("subjects") {
        if matches!(subject.text("kind"), "User" | "Group") {
            subject.set_if_empty("apiGroup", "rbac.authorization.k8s.io");
        }
    }
}
