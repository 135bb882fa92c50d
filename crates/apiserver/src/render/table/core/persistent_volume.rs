//! The row of a PersistentVolume.

use coracle_api::time::Timestamp;
use k8s_openapi::api::core::v1::PersistentVolume;

use super::persistent_volume_claim::{access_modes, storage_class};
use crate::render::table::Row;
use crate::render::table::cells::{UNSET, age, name, quantity};

pub(super) fn row(volume: &PersistentVolume, now: Timestamp) -> Row {
    let metadata = &volume.metadata;
    let spec = volume.spec.as_ref();
    let status = volume.status.as_ref();
    let capacity = spec.and_then(|spec| spec.capacity.as_ref()?.get("storage"));

    let modes = access_modes(spec.and_then(|spec| spec.access_modes.as_deref()));
    let reclaim = spec.and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref());
    let phase = match &metadata.deletion_timestamp {
        Some(_) => "Terminating",
        None => status
            .and_then(|status| status.phase.as_deref())
            .unwrap_or_default(),
    };

    let claim = spec.and_then(|spec| spec.claim_ref.as_ref()).map(|claim| {
        format!(
            "{}/{}",
            claim.namespace.as_deref().unwrap_or_default(),
            claim.name.as_deref().unwrap_or_default()
        )
    });

    row![
        name(metadata),
        quantity(capacity),
        modes,
        reclaim.unwrap_or_default(),
        phase,
        claim.unwrap_or_default(),
        storage_class(
            metadata,
            spec.and_then(|spec| spec.storage_class_name.as_deref())
        ),
        spec.and_then(|spec| spec.volume_attributes_class_name.as_deref())
            .unwrap_or(UNSET),
        status
            .and_then(|status| status.reason.as_deref())
            .unwrap_or_default(),
        age(metadata, now),
        spec.and_then(|spec| spec.volume_mode.as_deref())
            .unwrap_or(UNSET)
    ]
}
