//! Rows of the rbac.authorization.k8s.io group.

mod cluster_role_binding;
mod role_binding;
#[cfg(test)]
mod tests;

use coracle_api::typed::from_tree;

use super::printers::Printer;

pub(super) fn printer(kind: &str) -> Option<Printer> {
    let printer: Printer = match kind {
        "ClusterRoleBinding" => |tree, now| Ok(cluster_role_binding::row(&from_tree(tree)?, now)),
        "RoleBinding" => |tree, now| Ok(role_binding::row(&from_tree(tree)?, now)),
        _ => return None,
    };
    Some(printer)
}
