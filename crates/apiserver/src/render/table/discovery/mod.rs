//! Rows of the discovery.k8s.io group.

mod endpoint_slice;
#[cfg(test)]
mod tests;

use coracle_api::typed::from_tree;

use super::printers::Printer;

pub(super) fn printer(kind: &str) -> Option<Printer> {
    let printer: Printer = match kind {
        "EndpointSlice" => |tree, now| Ok(endpoint_slice::row(&from_tree(tree)?, now)),
        _ => return None,
    };
    Some(printer)
}
