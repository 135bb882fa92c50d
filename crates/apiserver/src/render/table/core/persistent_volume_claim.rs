//! The row of a PersistentVolumeClaim.

use coracle_api::time::Timestamp;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::render::table::Row;
use crate::render::table::cells::{UNSET, age, name, quantity};

pub(super) fn row(claim: &PersistentVolumeClaim, now: Timestamp) -> Row {
    let metadata = &claim.metadata;
    let spec = claim.spec.as_ref();
    let status = claim.status.as_ref();
    let phase = match &metadata.deletion_timestamp {
        Some(_) => "Terminating",
        None => status
            .and_then(|status| status.phase.as_deref())
            .unwrap_or_default(),
    };

    let volume = spec
        .and_then(|spec| spec.volume_name.as_deref())
        .unwrap_or_default();

    // What a claim asks for is not what it has: without a volume it has nothing.
    let (capacity, modes) = match volume {
        "" => (String::new(), String::new()),
        _ => (
            quantity(status.and_then(|status| status.capacity.as_ref()?.get("storage"))),
            access_modes(status.and_then(|status| status.access_modes.as_deref())),
        ),
    };

    row![
        name(metadata),
        phase,
        volume,
        capacity,
        modes,
        storage_class(
            metadata,
            spec.and_then(|spec| spec.storage_class_name.as_deref())
        ),
        spec.and_then(|spec| spec.volume_attributes_class_name.as_deref())
            .unwrap_or(UNSET),
        age(metadata, now),
        spec.and_then(|spec| spec.volume_mode.as_deref())
            .unwrap_or(UNSET)
    ]
}

/// `RWO,ROX`: in this order, each once.
pub(super) fn access_modes(modes: Option<&[String]>) -> String {
    let known = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];

    let has = |mode: &str| modes.unwrap_or_default().iter().any(|known| known == mode);
    let shown: Vec<&str> = known
        .iter()
        .filter(|(mode, _)| has(mode))
        .map(|(_, short)| *short)
        .collect();

    shown.join(",")
}

/// The class, where an old annotation counts more than the field.
pub(super) fn storage_class<'a>(metadata: &'a ObjectMeta, field: Option<&'a str>) -> &'a str {
    let annotations = metadata.annotations.as_ref();
    let annotated = annotations
        .and_then(|annotations| annotations.get("volume.beta.kubernetes.io/storage-class"));
    annotated.map(String::as_str).or(field).unwrap_or_default()
}
