//! Rows of the policy group.

mod pod_disruption_budget;
#[cfg(test)]
mod tests;

use coracle_api::typed::from_tree;

use super::printers::Printer;

pub(super) fn printer(kind: &str) -> Option<Printer> {
    let printer: Printer = match kind {
        "PodDisruptionBudget" => |tree, now| Ok(pod_disruption_budget::row(&from_tree(tree)?, now)),
        _ => return None,
    };
    Some(printer)
}
