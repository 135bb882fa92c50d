//! The source of a PersistentVolume: exactly one. Some are those of pods, some differ in how they
//! name their secrets.

use coracle_api::Path;
use coracle_api::field_error::{FieldError, refuse};
use coracle_api::names::{dns1123_label, dns1123_subdomain, path_without_backsteps};
use k8s_openapi::api::core::v1::{
    AzureFilePersistentVolumeSource, CSIPersistentVolumeSource, CinderPersistentVolumeSource,
    FlexPersistentVolumeSource, GlusterfsPersistentVolumeSource, ISCSIPersistentVolumeSource,
    LocalVolumeSource, PersistentVolumeSpec, SecretReference, StorageOSPersistentVolumeSource,
};

use super::source::Checker;
use super::{cloud, iqn, local, network};
use crate::strategy::Errors;
use crate::validate::{text, validate_required};

/// The most characters of a volume's name and its portal together where an initiator is named.
const LONGEST_PORTAL: usize = 64;

/// Validates the first source, and adds an error for each further one. `name` is the volume's.
pub(crate) fn validate_persistent_volume_source(
    spec: &PersistentVolumeSpec,
    name: &str,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let mut validate = Checker {
        at,
        given: false,
        errors,
    };
    validate.source(&spec.host_path, "hostPath", local::validate_host_path);

    validate.source_as(
        &spec.gce_persistent_disk,
        "gcePersistentDisk",
        "persistentDisk",
        cloud::validate_gce_disk,
    );

    validate.source(
        &spec.aws_elastic_block_store,
        "awsElasticBlockStore",
        cloud::validate_aws_disk,
    );

    validate.source(&spec.glusterfs, "glusterfs", validate_glusterfs);
    validate.source(&spec.flocker, "flocker", network::validate_flocker);
    validate.source(&spec.nfs, "nfs", network::validate_nfs);
    validate.source(&spec.rbd, "rbd", |rbd, at, errors| {
        require_list(&rbd.monitors, &at.field("monitors"), errors);
        require(&rbd.image, &at.field("image"), errors);
    });

    validate.source(&spec.quobyte, "quobyte", network::validate_quobyte);
    validate.source_as(&spec.cephfs, "cephFS", "cephfs", |cephfs, at, errors| {
        require_list(&cephfs.monitors, &at.field("monitors"), errors);
    });
    validate.source(&spec.iscsi, "iscsi", |source, at, errors| {
        validate_iscsi(source, name, at, errors)
    });
    validate.source(&spec.cinder, "cinder", validate_cinder);
    validate.source(&spec.fc, "fc", network::validate_fibre_channel);

    // Upstream never reports this one as a further source.
    let given = std::mem::take(&mut validate.given);
    validate.source(&spec.flex_volume, "flexVolume", validate_flex_volume);
    validate.given |= given;

    validate.source(&spec.azure_file, "azureFile", validate_azure_file);
    validate.source(
        &spec.vsphere_volume,
        "vsphereVolume",
        cloud::validate_vsphere,
    );
    validate.source(
        &spec.photon_persistent_disk,
        "photonPersistentDisk",
        cloud::validate_photon,
    );

    validate.source(
        &spec.portworx_volume,
        "portworxVolume",
        cloud::validate_portworx,
    );
    validate.source(&spec.azure_disk, "azureDisk", cloud::validate_azure_disk);
    validate.source(&spec.scale_io, "scaleIO", |source, at, errors| {
        require(&source.gateway, &at.field("gateway"), errors);
        require(&source.system, &at.field("system"), errors);
        require(text(&source.volume_name), &at.field("volumeName"), errors);
    });

    validate.source(&spec.local, "local", |source, place, errors| {
        validate_local(source, place, errors);
        if spec.node_affinity.is_none() {
            let why = "Local volume requires node affinity";
            errors.push(FieldError::required(&at.field("nodeAffinity"), why));
        }
    });

    validate.source(&spec.storageos, "storageos", validate_storage_os);
    validate.source(&spec.csi, "csi", validate_csi);

    if !validate.given {
        errors.push(FieldError::required(at, "must specify a volume type"));
    }
}

fn require(found: &str, at: &Path<'_>, errors: &mut Errors) {
    if found.is_empty() {
        errors.push(FieldError::required(at, ""));
    }
}

fn require_list(found: &[String], at: &Path<'_>, errors: &mut Errors) {
    if found.is_empty() {
        errors.push(FieldError::required(at, ""));
    }
}

fn validate_glusterfs(
    source: &GlusterfsPersistentVolumeSource,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    require(&source.endpoints, &at.field("endpoints"), errors);
    require(&source.path, &at.field("path"), errors);
    let place = at.field("endpointsNamespace");
    match source.endpoints_namespace.as_deref() {
        None => {}
        Some("") => {
            let why = "if the endpointnamespace is set, it must be a valid namespace name";
            errors.push(FieldError::invalid_str(&place, "", why));
        }
        Some(namespace) => refuse(&place, namespace, dns1123_label(namespace), errors),
    }
}

fn validate_iscsi(
    source: &ISCSIPersistentVolumeSource,
    name: &str,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    require(&source.target_portal, &at.field("targetPortal"), errors);
    let length = name.len() + 1 + source.target_portal.len();
    if source.initiator_name.is_some() && length > LONGEST_PORTAL {
        let why = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.";
        errors.push(FieldError::invalid_str(
            &at.field("targetportal"),
            &source.target_portal,
            why,
        ));
    }

    match source.iqn.as_str() {
        "" => errors.push(FieldError::required(&at.field("iqn"), "")),
        name => refuse(&at.field("iqn"), name, iqn::wrong(name), errors),
    }

    if !(0..=255).contains(&source.lun) {
        let why = "must be between 0 and 255, inclusive";
        errors.push(FieldError::invalid(
            &at.field("lun"),
            source.lun.to_string(),
            why,
        ));
    }

    let authenticates =
        source.chap_auth_discovery == Some(true) || source.chap_auth_session == Some(true);
    match &source.secret_ref {
        None if authenticates => errors.push(FieldError::required(&at.field("secretRef"), "")),
        None => {}
        Some(secret) => require(
            text(&secret.name),
            &at.field("secretRef").field("name"),
            errors,
        ),
    }

    if let Some(name) = &source.initiator_name {
        refuse(&at.field("initiatorname"), name, iqn::wrong(name), errors);
    }
}

fn validate_cinder(source: &CinderPersistentVolumeSource, at: &Path<'_>, errors: &mut Errors) {
    require(&source.volume_id, &at.field("volumeID"), errors);
    if let Some(secret) = &source.secret_ref {
        let at = at.field("secretRef");
        require(text(&secret.name), &at.field("name"), errors);
        require(text(&secret.namespace), &at.field("namespace"), errors);
    }
}

fn validate_flex_volume(source: &FlexPersistentVolumeSource, at: &Path<'_>, errors: &mut Errors) {
    require(&source.driver, &at.field("driver"), errors);
    local::validate_flex_options(source.options.as_ref(), at, errors);
}

fn validate_azure_file(
    source: &AzureFilePersistentVolumeSource,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    require(&source.secret_name, &at.field("secretName"), errors);
    require(&source.share_name, &at.field("shareName"), errors);
    if source.secret_namespace.as_deref() == Some("") {
        errors.push(FieldError::required(&at.field("secretNamespace"), ""));
    }
}

fn validate_local(source: &LocalVolumeSource, at: &Path<'_>, errors: &mut Errors) {
    validate_required(
        &source.path,
        path_without_backsteps,
        &at.field("path"),
        errors,
    );
}

fn validate_storage_os(
    source: &StorageOSPersistentVolumeSource,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    validate_required(
        text(&source.volume_name),
        dns1123_label,
        &at.field("volumeName"),
        errors,
    );

    let namespace = text(&source.volume_namespace);
    if !namespace.is_empty() {
        refuse(
            &at.field("volumeNamespace"),
            namespace,
            dns1123_label(namespace),
            errors,
        );
    }

    if let Some(secret) = &source.secret_ref {
        let at = at.field("secretRef");
        require(text(&secret.name), &at.field("name"), errors);
        require(text(&secret.namespace), &at.field("namespace"), errors);
    }
}

fn validate_csi(source: &CSIPersistentVolumeSource, at: &Path<'_>, errors: &mut Errors) {
    local::validate_driver(&source.driver, &at.field("driver"), errors);
    require(&source.volume_handle, &at.field("volumeHandle"), errors);
    let secrets = [
        (
            "controllerPublishSecretRef",
            &source.controller_publish_secret_ref,
        ),
        (
            "controllerExpandSecretRef",
            &source.controller_expand_secret_ref,
        ),
        ("nodePublishSecretRef", &source.node_publish_secret_ref),
        ("nodeExpandSecretRef", &source.node_expand_secret_ref),
    ];

    for (name, secret) in secrets {
        if let Some(SecretReference {
            name: of,
            namespace,
        }) = secret
        {
            let at = at.field(name);
            validate_required(text(of), dns1123_subdomain, &at.field("name"), errors);
            validate_required(
                text(namespace),
                dns1123_label,
                &at.field("namespace"),
                errors,
            );
        }
    }
}
