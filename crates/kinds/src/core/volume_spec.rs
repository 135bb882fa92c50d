//! The spec of a volume: of a PersistentVolume, or inline in a VolumeAttachment.

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::names::dns1123_subdomain;
use coracle_api::selector::Values;
use coracle_api::{Path, Value};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeSpec};

use super::{claim, pod};
use crate::strategy::{Errors, SPEC, View};
use crate::validate::internal_form::{self, Fields, Form};
use crate::validate::{items, resources, text, validate_one_of};

const RECLAIM_POLICIES: [&str; 3] = ["Delete", "Recycle", "Retain"];
const MODES: [&str; 2] = ["Block", "Filesystem"];
const NOT_INLINE: &str = "may not be specified in the context of inline volumes";

/// Validates the spec of a PersistentVolume.
pub(super) fn validate(new: &View<'_, PersistentVolume>, errors: &mut Errors) {
    let nothing = PersistentVolumeSpec::default();
    let spec = new.spec.as_ref().unwrap_or(&nothing);
    validate_access_modes(spec, &SPEC, errors);
    validate_capacity(new.tree, spec, errors);

    let policy = text(&spec.persistent_volume_reclaim_policy);
    if !policy.is_empty() {
        let at = SPEC.field("persistentVolumeReclaimPolicy");
        validate_one_of(policy, &RECLAIM_POLICIES, &at, errors);
    }

    if let Some(affinity) = &spec.node_affinity {
        let affinity_at = SPEC.field("nodeAffinity");
        let at = affinity_at.field("required");
        match &affinity.required {
            None => errors.push(FieldError::required(
                &at,
                "must specify required node constraints",
            )),
            Some(selector) => pod::validate_node_selector(selector, Values::Validated, &at, errors),
        }
    }

    let name = new.tree.meta().name();
    pod::validate_persistent_source(spec, name, &SPEC, errors);
    validate_root_is_not_recycled(spec, &SPEC, errors);

    let class = text(&spec.storage_class_name);
    if !class.is_empty() {
        let at = SPEC.field("storageClassName");
        refuse(&at, class, dns1123_subdomain(class), errors);
    }

    if let Some(mode) = &spec.volume_mode {
        validate_one_of(mode, &MODES, &SPEC.field("volumeMode"), errors);
    }

    validate_attributes_class(spec, &SPEC, errors);
}

/// Validates the spec of a volume that has no object of its own: less may be set.
pub(crate) fn validate_inline(spec: &PersistentVolumeSpec, at: &Path<'_>, errors: &mut Errors) {
    let refuse_if = |set: bool, name: &str, errors: &mut Errors| {
        if set {
            errors.push(FieldError::forbidden(&at.field(name), NOT_INLINE));
        }
    };
    refuse_if(spec.claim_ref.is_some(), "claimRef", errors);
    let has_capacity = spec.capacity.iter().flatten().count() > 0;
    refuse_if(has_capacity, "capacity", errors);
    if spec.csi.is_none() {
        let why = "has to be specified in the context of inline volumes";
        errors.push(FieldError::required(&at.field("csi"), why));
    }

    validate_access_modes(spec, at, errors);

    if !matches!(text(&spec.persistent_volume_reclaim_policy), "" | "Retain") {
        let why = "may only be Retain in the context of inline volumes";
        let place = at.field("persistentVolumeReclaimPolicy");
        errors.push(FieldError::forbidden(&place, why));
    }

    refuse_if(spec.node_affinity.is_some(), "nodeAffinity", errors);
    pod::validate_persistent_source(spec, "", at, errors);
    validate_root_is_not_recycled(spec, at, errors);

    let has_class = !text(&spec.storage_class_name).is_empty();
    refuse_if(has_class, "storageClassName", errors);

    if spec
        .volume_mode
        .as_deref()
        .is_some_and(|mode| mode != "Filesystem")
    {
        let why =
            "may not specify volumeMode other than Filesystem in the context of inline volumes";
        errors.push(FieldError::forbidden(&at.field("volumeMode"), why));
    }
}

fn validate_access_modes(spec: &PersistentVolumeSpec, at: &Path<'_>, errors: &mut Errors) {
    let (modes, at) = (items(&spec.access_modes), at.field("accessModes"));
    if modes.is_empty() {
        errors.push(FieldError::required(&at, ""));
    }

    claim::validate_access_modes(modes, &at, errors);
}

fn validate_root_is_not_recycled(spec: &PersistentVolumeSpec, at: &Path<'_>, errors: &mut Errors) {
    let is_root = spec.host_path.as_ref().is_some_and(|source| {
        !source.path.is_empty() && source.path.trim_end_matches('/').is_empty()
    });

    if is_root && text(&spec.persistent_volume_reclaim_policy) == "Recycle" {
        let why = "may not be 'recycle' for a hostPath mount of '/'";
        let place = at.field("persistentVolumeReclaimPolicy");
        errors.push(FieldError::forbidden(&place, why));
    }
}

fn validate_attributes_class(spec: &PersistentVolumeSpec, at: &Path<'_>, errors: &mut Errors) {
    let Some(class) = &spec.volume_attributes_class_name else {
        return;
    };

    let place = at.field("volumeAttributesClassName");
    match class.as_str() {
        "" => errors.push(FieldError::required(
            &place,
            "an empty string is disallowed",
        )),
        class => refuse(&place, class, dns1123_subdomain(class), errors),
    }

    if spec.csi.is_none() {
        let why = "has to be specified when using volumeAttributesClassName";
        errors.push(FieldError::required(&at.field("csi"), why));
    }
}

fn validate_capacity(tree: &Value, spec: &PersistentVolumeSpec, errors: &mut Errors) {
    let at = SPEC.field("capacity");
    let amounts = spec.capacity.iter().flatten();
    let count = amounts.clone().count();
    if count == 0 {
        errors.push(FieldError::required(&at, ""));
    }

    if count != 1 || !amounts.clone().any(|(name, _)| name == "storage") {
        let mut error = FieldError::not_supported(&at, "", &["storage"]);
        let found = tree.at(&["spec", "capacity"]);
        error.bad_value = Some(internal_form::shown(found, &Form::Same));
        errors.push(error);
    }

    for (name, written) in amounts {
        let (amount, at) = (resources::read(written), at.key(name));
        if amount.value() < 0 {
            let why = "must be a valid resource quantity";
            errors.push(FieldError::invalid(&at, amount.value().to_string(), why));
        }

        if amount.signum() <= 0 {
            errors.push(FieldError::invalid_str(
                &at,
                &amount.to_string(),
                "must be greater than zero",
            ));
        }
    }
}

/// A node selector as errors show it.
pub(crate) const NODE_SELECTOR: Fields = &[(
    "NodeSelectorTerms",
    "nodeSelectorTerms",
    Form::List(&NODE_SELECTOR_TERM),
)];

pub(crate) const NODE_SELECTOR_TERM: Form = Form::Struct(&[
    ("MatchExpressions", "matchExpressions", REQUIREMENTS),
    ("MatchFields", "matchFields", REQUIREMENTS),
]);

const REQUIREMENTS: Form = Form::List(&Form::Struct(&[
    ("Key", "key", Form::Text),
    ("Operator", "operator", Form::Text),
    ("Values", "values", Form::Same),
]));

/// A volume's affinity to nodes as errors show it.
pub(super) const NODE_AFFINITY: Form =
    Form::Pointer(&[("Required", "required", Form::Pointer(NODE_SELECTOR))]);

const SECRET: Form = Form::Pointer(&[
    ("Name", "name", Form::Text),
    ("Namespace", "namespace", Form::Text),
]);

const OBJECT: Form = Form::Pointer(&[
    ("Kind", "kind", Form::Text),
    ("Namespace", "namespace", Form::Text),
    ("Name", "name", Form::Text),
    ("UID", "uid", Form::Text),
    ("APIVersion", "apiVersion", Form::Text),
    ("ResourceVersion", "resourceVersion", Form::Text),
    ("FieldPath", "fieldPath", Form::Text),
]);

/// The spec of a volume as errors show it.
#[rustfmt::skip]
pub(crate) const FORM: Form = Form::Pointer(&[
    ("Capacity", "capacity", Form::Same),
    ("GCEPersistentDisk", "gcePersistentDisk", Form::Pointer(&[
        ("PDName", "pdName", Form::Text),
        ("FSType", "fsType", Form::Text),
        ("Partition", "partition", Form::Number),
        ("ReadOnly", "readOnly", Form::Flag),
    ])),
    ("AWSElasticBlockStore", "awsElasticBlockStore", Form::Pointer(&[
        ("VolumeID", "volumeID", Form::Text),
        ("FSType", "fsType", Form::Text),
        ("Partition", "partition", Form::Number),
        ("ReadOnly", "readOnly", Form::Flag),
    ])),
    ("HostPath", "hostPath", Form::Pointer(&[
        ("Path", "path", Form::Text),
        ("Type", "type", Form::Same),
    ])),
    ("Glusterfs", "glusterfs", Form::Pointer(&[
        ("EndpointsName", "endpoints", Form::Text),
        ("Path", "path", Form::Text),
        ("ReadOnly", "readOnly", Form::Flag),
        ("EndpointsNamespace", "endpointsNamespace", Form::Same),
    ])),
    ("NFS", "nfs", Form::Pointer(&[
        ("Server", "server", Form::Text),
        ("Path", "path", Form::Text),
        ("ReadOnly", "readOnly", Form::Flag),
    ])),
    ("RBD", "rbd", Form::Pointer(&[
        ("CephMonitors", "monitors", Form::Same),
        ("RBDImage", "image", Form::Text),
        ("FSType", "fsType", Form::Text),
        ("RBDPool", "pool", Form::Text),
        ("RadosUser", "user", Form::Text),
        ("Keyring", "keyring", Form::Text),
        ("SecretRef", "secretRef", SECRET),
        ("ReadOnly", "readOnly", Form::Flag),
    ])),
    ("Quobyte", "quobyte", Form::Pointer(&[
        ("Registry", "registry", Form::Text),
        ("Volume", "volume", Form::Text),
        ("ReadOnly", "readOnly", Form::Flag),
        ("User", "user", Form::Text),
        ("Group", "group", Form::Text),
        ("Tenant", "tenant", Form::Text),
    ])),
    ("ISCSI", "iscsi", Form::Pointer(&[
        ("TargetPortal", "targetPortal", Form::Text),
        ("IQN", "iqn", Form::Text),
        ("Lun", "lun", Form::Number),
        ("ISCSIInterface", "iscsiInterface", Form::Text),
        ("FSType", "fsType", Form::Text),
        ("ReadOnly", "readOnly", Form::Flag),
        ("Portals", "portals", Form::Same),
        ("DiscoveryCHAPAuth", "chapAuthDiscovery", Form::Flag),
        ("SessionCHAPAuth", "chapAuthSession", Form::Flag),
        ("SecretRef", "secretRef", SECRET),
        ("InitiatorName", "initiatorName", Form::Same),
    ])),
    ("FlexVolume", "flexVolume", Form::Pointer(&[
        ("Driver", "driver", Form::Text),
        ("FSType", "fsType", Form::Text),
        ("SecretRef", "secretRef", SECRET),
        ("ReadOnly", "readOnly", Form::Flag),
        ("Options", "options", Form::Same),
    ])),
    ("Cinder", "cinder", Form::Pointer(&[
        ("VolumeID", "volumeID", Form::Text),
        ("FSType", "fsType", Form::Text),
        ("ReadOnly", "readOnly", Form::Flag),
        ("SecretRef", "secretRef", SECRET),
    ])),
    ("CephFS", "cephfs", Form::Pointer(&[
        ("Monitors", "monitors", Form::Same),
        ("Path", "path", Form::Text),
        ("User", "user", Form::Text),
        ("SecretFile", "secretFile", Form::Text),
        ("SecretRef", "secretRef", SECRET),
        ("ReadOnly", "readOnly", Form::Flag),
    ])),
    ("FC", "fc", Form::Pointer(&[
        ("TargetWWNs", "targetWWNs", Form::Same),
        ("Lun", "lun", Form::Same),
        ("FSType", "fsType", Form::Text),
        ("ReadOnly", "readOnly", Form::Flag),
        ("WWIDs", "wwids", Form::Same),
    ])),
    ("Flocker", "flocker", Form::Pointer(&[
        ("DatasetName", "datasetName", Form::Text),
        ("DatasetUUID", "datasetUUID", Form::Text),
    ])),
    ("AzureFile", "azureFile", Form::Pointer(&[
        ("SecretName", "secretName", Form::Text),
        ("ShareName", "shareName", Form::Text),
        ("ReadOnly", "readOnly", Form::Flag),
        ("SecretNamespace", "secretNamespace", Form::Same),
    ])),
    ("VsphereVolume", "vsphereVolume", Form::Pointer(&[
        ("VolumePath", "volumePath", Form::Text),
        ("FSType", "fsType", Form::Text),
        ("StoragePolicyName", "storagePolicyName", Form::Text),
        ("StoragePolicyID", "storagePolicyID", Form::Text),
    ])),
    ("AzureDisk", "azureDisk", Form::Pointer(&[
        ("DiskName", "diskName", Form::Text),
        ("DataDiskURI", "diskURI", Form::Text),
        ("CachingMode", "cachingMode", Form::Same),
        ("FSType", "fsType", Form::Same),
        ("ReadOnly", "readOnly", Form::Same),
        ("Kind", "kind", Form::Same),
    ])),
    ("PhotonPersistentDisk", "photonPersistentDisk", Form::Pointer(&[
        ("PdID", "pdID", Form::Text),
        ("FSType", "fsType", Form::Text),
    ])),
    ("PortworxVolume", "portworxVolume", Form::Pointer(&[
        ("VolumeID", "volumeID", Form::Text),
        ("FSType", "fsType", Form::Text),
        ("ReadOnly", "readOnly", Form::Flag),
    ])),
    ("ScaleIO", "scaleIO", Form::Pointer(&[
        ("Gateway", "gateway", Form::Text),
        ("System", "system", Form::Text),
        ("SecretRef", "secretRef", SECRET),
        ("SSLEnabled", "sslEnabled", Form::Flag),
        ("ProtectionDomain", "protectionDomain", Form::Text),
        ("StoragePool", "storagePool", Form::Text),
        ("StorageMode", "storageMode", Form::Text),
        ("VolumeName", "volumeName", Form::Text),
        ("FSType", "fsType", Form::Text),
        ("ReadOnly", "readOnly", Form::Flag),
    ])),
    ("Local", "local", Form::Pointer(&[
        ("Path", "path", Form::Text),
        ("FSType", "fsType", Form::Same),
    ])),
    ("StorageOS", "storageos", Form::Pointer(&[
        ("VolumeName", "volumeName", Form::Text),
        ("VolumeNamespace", "volumeNamespace", Form::Text),
        ("FSType", "fsType", Form::Text),
        ("ReadOnly", "readOnly", Form::Flag),
        ("SecretRef", "secretRef", OBJECT),
    ])),
    ("CSI", "csi", Form::Pointer(&[
        ("Driver", "driver", Form::Text),
        ("VolumeHandle", "volumeHandle", Form::Text),
        ("ReadOnly", "readOnly", Form::Flag),
        ("FSType", "fsType", Form::Text),
        ("VolumeAttributes", "volumeAttributes", Form::Same),
        ("ControllerPublishSecretRef", "controllerPublishSecretRef", SECRET),
        ("NodeStageSecretRef", "nodeStageSecretRef", SECRET),
        ("NodePublishSecretRef", "nodePublishSecretRef", SECRET),
        ("ControllerExpandSecretRef", "controllerExpandSecretRef", SECRET),
        ("NodeExpandSecretRef", "nodeExpandSecretRef", SECRET),
    ])),
    ("AccessModes", "accessModes", Form::Same),
    ("ClaimRef", "claimRef", OBJECT),
    ("PersistentVolumeReclaimPolicy", "persistentVolumeReclaimPolicy", Form::Text),
    ("StorageClassName", "storageClassName", Form::Text),
    ("MountOptions", "mountOptions", Form::Same),
    ("VolumeMode", "volumeMode", Form::Same),
    ("NodeAffinity", "nodeAffinity", NODE_AFFINITY),
    ("VolumeAttributesClassName", "volumeAttributesClassName", Form::Same),
]);
