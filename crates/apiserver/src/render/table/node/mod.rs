//! Rows of the node.k8s.io group.

mod runtime_class;
#[cfg(test)]
mod tests;

use coracle_api::typed::from_tree;

use super::printers::Printer;

pub(super) fn printer(kind: &str) -> Option<Printer> {
    let printer: Printer = match kind {
        "RuntimeClass" => |tree, now| Ok(runtime_class::row(&from_tree(tree)?, now)),
        _ => return None,
    };
    Some(printer)
}
