//! Rows of the resource.k8s.io group.

mod device_class;
mod resource_claim;
mod resource_claim_template;
mod resource_slice;
#[cfg(test)]
mod tests;

use coracle_api::typed::from_tree;

use super::printers::Printer;

pub(super) fn printer(kind: &str) -> Option<Printer> {
    let printer: Printer = match kind {
        "DeviceClass" => |tree, now| Ok(device_class::row(&from_tree(tree)?, now)),
        "ResourceClaim" => |tree, now| Ok(resource_claim::row(&from_tree(tree)?, now)),
        "ResourceClaimTemplate" => {
            |tree, now| Ok(resource_claim_template::row(&from_tree(tree)?, now))
        }
        "ResourceSlice" => |tree, now| Ok(resource_slice::row(&from_tree(tree)?, now)),
        _ => return None,
    };
    Some(printer)
}
