//! PersistentVolume: storage that exists independently of claims. Its source never changes.

use coracle_api::field_error::{FieldError, shown};
use coracle_api::time::{Time, Timestamp};
use coracle_api::{Map, Path, Value};
use k8s_openapi::api::core::v1::PersistentVolume;

use super::persistent_volume_claim::{access_modes, storage_class};
use super::volume_spec;
use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells;
use crate::strategy::{Context, Errors, SPEC, Strategy, View};
use crate::validate::{internal_form, validate_unchanged};
use crate::{OwnMetadata, Part};

const MOUNT_OPTIONS: &str = "volume.beta.kubernetes.io/mount-options";

/// Fields of the spec that are not the source.
const NOT_SOURCES: [&str; 9] = [
    "accessModes",
    "capacity",
    "claimRef",
    "mountOptions",
    "nodeAffinity",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "volumeAttributesClassName",
    "volumeMode",
];

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &PersistentVolumes,
    printer: printer!(print_row),
    ..Behaviour::DEFAULT
};

struct PersistentVolumes;

impl Strategy for PersistentVolumes {
    type Object = PersistentVolume;

    /// An update validates the volume as new; a change of metadata is validated for every kind.
    fn own_metadata(&self, part: Part) -> OwnMetadata {
        OwnMetadata {
            on_update: part == Part::Status,
            ..OwnMetadata::named(self.name_rule())
        }
    }

    fn prepare_create(&self, new: &mut Value, cx: &Context<'_>) {
        let mut status = Map::new();
        status.insert("phase", "Pending");
        status.insert("lastPhaseTransitionTime", Time(cx.now).to_string());
        if let Some(new) = new.as_object_mut() {
            new.insert("status", status);
        }
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, cx: &Context<'_>) {
        if cx.part != Part::Status {
            return;
        }

        let at = |volume: &Value, name: &str| {
            volume
                .at(&["status", name])
                .filter(|found| !found.is_null())
                .cloned()
        };
        let same_phase = at(new, "phase") == at(old, "phase");

        let (time, before) = (
            at(new, "lastPhaseTransitionTime"),
            at(old, "lastPhaseTransitionTime"),
        );

        let time = match (same_phase, time) {
            (true, None) => before,
            (false, time) if time.is_none() || time == before => {
                Some(Time(cx.now).to_string().into())
            }
            (_, time) => time,
        };

        if let (Some(new), Some(time)) = (new.as_object_mut(), time) {
            new.object_mut("status")
                .insert("lastPhaseTransitionTime", time);
        }
    }

    fn validate(&self, new: &View<'_, PersistentVolume>, _: &Context<'_>, errors: &mut Errors) {
        volume_spec::validate(new, errors);
        validate_mount_options(new, errors);
    }

    fn validate_update(
        &self,
        new: &View<'_, PersistentVolume>,
        old: &View<'_, PersistentVolume>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        if cx.part == Part::Status {
            return;
        }

        self.validate_anew(new, cx, errors);
        self.own_metadata(cx.part).validate(new.tree, cx, errors);
        volume_spec::validate(new, errors);
        validate_same_source(new.tree, old.tree, errors);

        let mode = ["spec", "volumeMode"];
        validate_unchanged(
            new.tree.at(&mode),
            old.tree.at(&mode),
            &Path::Root.field("volumeMode"),
            "null",
            errors,
        );

        let affinity = ["spec", "nodeAffinity"];
        if old.tree.at(&affinity).is_some() && new.tree.at(&affinity) != old.tree.at(&affinity) {
            let found = internal_form::shown(new.tree.at(&affinity), &volume_spec::NODE_AFFINITY);
            let why = "field is immutable, except for updating from beta label to GA";
            errors.push(FieldError::invalid(
                &Path::Root.field("nodeAffinity"),
                found,
                why,
            ));
        }

        let class = ["spec", "volumeAttributesClassName"];
        if old.tree.at(&class).is_some() && new.tree.at(&class).is_none() {
            let why = "update from non-nil value to nil is forbidden";
            errors.push(FieldError::forbidden(
                &SPEC.field("volumeAttributesClassName"),
                why,
            ));
        }
    }

    fn warnings(
        &self,
        new: &View<'_, PersistentVolume>,
        _: Option<&View<'_, PersistentVolume>>,
        cx: &Context<'_>,
    ) -> Vec<String> {
        if cx.part == Part::Status {
            Vec::new()
        } else {
            warnings(new)
        }
    }
}

/// Mount options are for some sources only.
fn validate_mount_options(new: &View<'_, PersistentVolume>, errors: &mut Errors) {
    let Some(spec) = &new.spec else { return };
    let can = spec.gce_persistent_disk.is_some()
        || spec.aws_elastic_block_store.is_some()
        || spec.glusterfs.is_some()
        || spec.nfs.is_some()
        || spec.rbd.is_some()
        || spec.quobyte.is_some()
        || spec.iscsi.is_some()
        || spec.cinder.is_some()
        || spec.cephfs.is_some()
        || spec.azure_file.is_some()
        || spec.vsphere_volume.is_some()
        || spec.azure_disk.is_some()
        || spec.photon_persistent_disk.is_some();

    if !can && new.tree.meta().annotation(MOUNT_OPTIONS).is_some() {
        let at = Path::Root.field("metadata.annotations");
        let why = "may not specify mount options for this volume type";
        errors.push(FieldError::forbidden(&at.field(MOUNT_OPTIONS), why));
    }
}

/// Validates that the source is unchanged; a secret for expanding the volume may be added later.
fn validate_same_source(new: &Value, old: &Value, errors: &mut Errors) {
    let source = |volume: &Value| {
        let mut spec = volume.get("spec").cloned().unwrap_or_else(Value::object);
        if let Some(members) = spec.as_object_mut() {
            members.retain(|name, _| !NOT_SOURCES.contains(&name));
        }
        spec
    };
    let (mut now, before) = (source(new), source(old));

    let had_secret = before.at(&["csi", "controllerExpandSecretRef"]).is_some();
    if before.get("csi").is_some()
        && !had_secret
        && let Some(csi) = now
            .as_object_mut()
            .and_then(|now| now.get_mut("csi"))
            .and_then(Value::as_object_mut)
    {
        csi.remove("controllerExpandSecretRef");
    }

    if now != before {
        let why = format!(
            "spec.persistentvolumesource is immutable after creation\n{} is not {}",
            shown(&now),
            shown(&before)
        );

        errors.push(FieldError::forbidden(
            &SPEC.field("persistentvolumesource"),
            why,
        ));
    }
}

fn warnings(new: &View<'_, PersistentVolume>) -> Vec<String> {
    let mut warnings = Vec::new();
    let annotations = [
        (
            "volume.beta.kubernetes.io/storage-class",
            "deprecated since v1.8; use \"storageClassName\" attribute instead",
        ),
        (
            MOUNT_OPTIONS,
            "deprecated since v1.31; use \"mountOptions\" attribute instead",
        ),
    ];

    for (key, reason) in annotations {
        if new.tree.meta().annotation(key).is_some() {
            warnings.push(format!("metadata.annotations[{key}]: {reason}"));
        }
    }

    let Some(spec) = &new.spec else {
        return warnings;
    };
    if spec.persistent_volume_reclaim_policy.as_deref() == Some("Recycle") {
        warnings.push(
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning."
                .to_owned(),
        );
    }

    let gone = [
        (
            "cephfs",
            spec.cephfs.is_some(),
            "deprecated in v1.28, non-functional in v1.31+",
        ),
        (
            "photonPersistentDisk",
            spec.photon_persistent_disk.is_some(),
            "deprecated in v1.11, non-functional in v1.16+",
        ),
        (
            "scaleIO",
            spec.scale_io.is_some(),
            "deprecated in v1.16, non-functional in v1.22+",
        ),
        (
            "storageOS",
            spec.storageos.is_some(),
            "deprecated in v1.22, non-functional in v1.25+",
        ),
        (
            "glusterfs",
            spec.glusterfs.is_some(),
            "deprecated in v1.25, non-functional in v1.26+",
        ),
        (
            "rbd",
            spec.rbd.is_some(),
            "deprecated in v1.28, non-functional in v1.31+",
        ),
    ];
    let gone = gone.into_iter().filter(|(_, given, _)| *given);
    warnings.extend(gone.map(|(name, _, reason)| format!("spec.{name}: {reason}")));

    warnings
}

fn print_row(volume: &PersistentVolume, now: Timestamp) -> Row {
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
        cells::name(metadata),
        cells::quantity(capacity),
        modes,
        reclaim.unwrap_or_default(),
        phase,
        claim.unwrap_or_default(),
        storage_class(
            metadata,
            spec.and_then(|spec| spec.storage_class_name.as_deref())
        ),
        spec.and_then(|spec| spec.volume_attributes_class_name.as_deref())
            .unwrap_or(cells::UNSET),
        status
            .and_then(|status| status.reason.as_deref())
            .unwrap_or_default(),
        cells::age(metadata, now),
        spec.and_then(|spec| spec.volume_mode.as_deref())
            .unwrap_or(cells::UNSET)
    ]
}
