//! Rows of the autoscaling group.

mod horizontal_pod_autoscaler;
mod scale;
#[cfg(test)]
mod tests;

use coracle_api::typed::from_tree;

use super::printers::Printer;

pub(super) fn printer(kind: &str) -> Option<Printer> {
    let printer: Printer = match kind {
        "HorizontalPodAutoscaler" => {
            |tree, now| Ok(horizontal_pod_autoscaler::row(&from_tree(tree)?, now))
        }
        "Scale" => |tree, now| Ok(scale::row(&from_tree(tree)?, now)),
        _ => return None,
    };
    Some(printer)
}
