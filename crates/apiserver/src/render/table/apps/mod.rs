//! Rows of the apps group.

mod controller_revision;
mod daemon_set;
mod deployment;
mod replica_set;
mod stateful_set;
#[cfg(test)]
mod tests;

use coracle_api::typed::from_tree;

use super::printers::Printer;

pub(super) fn printer(kind: &str) -> Option<Printer> {
    let printer: Printer = match kind {
        "ControllerRevision" => |tree, now| Ok(controller_revision::row(&from_tree(tree)?, now)),
        "DaemonSet" => |tree, now| Ok(daemon_set::row(&from_tree(tree)?, now)),
        "Deployment" => |tree, now| Ok(deployment::row(&from_tree(tree)?, now)),
        "ReplicaSet" => |tree, now| Ok(replica_set::row(&from_tree(tree)?, now)),
        "StatefulSet" => |tree, now| Ok(stateful_set::row(&from_tree(tree)?, now)),
        _ => return None,
    };
    Some(printer)
}
