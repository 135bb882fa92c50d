//! Rows of the scheduling.k8s.io group.

mod priority_class;
#[cfg(test)]
mod tests;

use coracle_api::typed::from_tree;

use super::printers::Printer;

pub(super) fn printer(kind: &str) -> Option<Printer> {
    let printer: Printer = match kind {
        "PriorityClass" => |tree, now| Ok(priority_class::row(&from_tree(tree)?, now)),
        _ => return None,
    };
    Some(printer)
}
