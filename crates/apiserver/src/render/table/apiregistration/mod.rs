//! Rows of the apiregistration.k8s.io group.

mod api_service;
#[cfg(test)]
mod tests;

use coracle_api::typed::from_tree;

use super::printers::Printer;

pub(super) fn printer(kind: &str) -> Option<Printer> {
    let printer: Printer = match kind {
        "APIService" => |tree, now| Ok(api_service::row(&from_tree(tree)?, now)),
        _ => return None,
    };
    Some(printer)
}
