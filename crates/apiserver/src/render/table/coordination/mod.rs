//! Rows of the coordination.k8s.io group.

mod lease;
#[cfg(test)]
mod tests;

use coracle_api::typed::from_tree;

use super::printers::Printer;

pub(super) fn printer(kind: &str) -> Option<Printer> {
    let printer: Printer = match kind {
        "Lease" => |tree, now| Ok(lease::row(&from_tree(tree)?, now)),
        _ => return None,
    };
    Some(printer)
}
