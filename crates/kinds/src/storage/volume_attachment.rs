//! VolumeAttachment: a volume that is attached to a node. Not validated yet.

use coracle_api::time::Timestamp;
use k8s_openapi::api::storage::v1::VolumeAttachment;

use crate::Part;
use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells::{age, name};

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    printer: printer!(print_row),
    reset_fields: &[(Part::Status, &[&["metadata"]])],
    ..Behaviour::DEFAULT
};

fn print_row(attachment: &VolumeAttachment, now: Timestamp) -> Row {
    let spec = &attachment.spec;
    row![
        name(&attachment.metadata),
        spec.attacher.as_str(),
        spec.source
            .persistent_volume_name
            .as_deref()
            .unwrap_or_default(),
        spec.node_name.as_str(),
        attachment
            .status
            .as_ref()
            .is_some_and(|status| status.attached),
        age(&attachment.metadata, now)
    ]
}
