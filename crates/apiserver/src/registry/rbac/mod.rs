//! Kinds of `rbac.authorization.k8s.io`: what may be done, and who may.
//!
//! Roles and cluster roles share their rules, the two sorts of bindings their subjects; names may
//! be anything that can stand in a path. On an update each is judged as new first, then the change
//! of its metadata.

mod binding;
mod escalation;
mod role;

pub(super) use binding::{ClusterRoleBindings, RoleBindings};
pub(super) use role::{ClusterRoles, Roles};

use coracle_api::names;

use super::OwnMetadata;

const GROUP: &str = "rbac.authorization.k8s.io";

/// The prefix of a generated name is judged like a whole one: dashes need no leave.
const OWN: OwnMetadata = OwnMetadata {
    on_update: false,
    ..OwnMetadata::named(names::path_segment_name)
};
