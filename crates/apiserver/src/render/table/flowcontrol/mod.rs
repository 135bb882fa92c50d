//! Rows of the flowcontrol.apiserver.k8s.io group.

mod flow_schema;
mod priority_level_configuration;
#[cfg(test)]
mod tests;

use coracle_api::typed::from_tree;

use super::printers::Printer;

pub(super) fn printer(kind: &str) -> Option<Printer> {
    let printer: Printer = match kind {
        "FlowSchema" => |tree, now| Ok(flow_schema::row(&from_tree(tree)?, now)),
        "PriorityLevelConfiguration" => {
            |tree, now| Ok(priority_level_configuration::row(&from_tree(tree)?, now))
        }
        _ => return None,
    };
    Some(printer)
}
