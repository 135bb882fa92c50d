//! Rows of the storage.k8s.io group.

mod csi_driver;
mod csi_node;
mod storage_class;
#[cfg(test)]
mod tests;
mod volume_attachment;
mod volume_attributes_class;

use coracle_api::typed::from_tree;

use super::printers::Printer;

pub(super) fn printer(kind: &str) -> Option<Printer> {
    let printer: Printer = match kind {
        "CSIDriver" => |tree, now| Ok(csi_driver::row(&from_tree(tree)?, now)),
        "CSINode" => |tree, now| Ok(csi_node::row(&from_tree(tree)?, now)),
        "StorageClass" => |tree, now| Ok(storage_class::row(&from_tree(tree)?, now)),
        "VolumeAttachment" => |tree, now| Ok(volume_attachment::row(&from_tree(tree)?, now)),
        "VolumeAttributesClass" => {
            |tree, now| Ok(volume_attributes_class::row(&from_tree(tree)?, now))
        }
        _ => return None,
    };
    Some(printer)
}
