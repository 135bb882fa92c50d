//! The source of a volume: exactly one.

use coracle_api::Path;
use coracle_api::field_error::FieldError;
use k8s_openapi::api::core::v1::Volume;

use super::{cloud, ephemeral, files, local, network, projected};
use crate::core::pod::options::Options;
use crate::strategy::Errors;

/// Validates the first source, and adds an error for each further one. `pod` is the name of the
/// pod, where it has one.
pub(super) fn validate_source(
    volume: &Volume,
    pod: Option<&str>,
    at: &Path<'_>,
    options: &Options,
    errors: &mut Errors,
) {
    let mut validate = Checker {
        at,
        given: false,
        errors,
    };

    let v = volume;
    validate.source(&v.empty_dir, "emptyDir", local::validate_empty_dir);
    validate.source(&v.host_path, "hostPath", local::validate_host_path);
    validate.source(&v.git_repo, "gitRepo", files::validate_git_repo);

    // Where upstream's errors name a source in two ways, so does this list.
    validate.source_as(
        &v.gce_persistent_disk,
        "gcePersistentDisk",
        "persistentDisk",
        cloud::validate_gce_disk,
    );

    validate.source(
        &v.aws_elastic_block_store,
        "awsElasticBlockStore",
        cloud::validate_aws_disk,
    );

    validate.source(&v.secret, "secret", files::validate_secret);
    validate.source(&v.nfs, "nfs", network::validate_nfs);
    validate.source(&v.iscsi, "iscsi", network::validate_iscsi);

    if let Some(iscsi) = &v.iscsi {
        network::validate_iscsi_name(iscsi, &v.name, at, validate.errors);
    }

    validate.source(&v.glusterfs, "glusterfs", network::validate_glusterfs);
    validate.source(&v.flocker, "flocker", network::validate_flocker);
    validate.source(
        &v.persistent_volume_claim,
        "persistentVolumeClaim",
        local::validate_claim,
    );

    validate.source(&v.rbd, "rbd", network::validate_rbd);
    validate.source(&v.cinder, "cinder", cloud::validate_cinder);
    validate.source_as(&v.cephfs, "cephFS", "cephfs", network::validate_cephfs);

    validate.source(&v.quobyte, "quobyte", network::validate_quobyte);
    validate.source_as(
        &v.downward_api,
        "downwarAPI",
        "downwardAPI",
        files::validate_downward_api,
    );

    validate.source(&v.fc, "fc", network::validate_fibre_channel);
    validate.source(&v.flex_volume, "flexVolume", local::validate_flex_volume);
    validate.source(&v.config_map, "configMap", files::validate_config_map);

    validate.source(&v.azure_file, "azureFile", cloud::validate_azure_file);
    validate.source(&v.vsphere_volume, "vsphereVolume", cloud::validate_vsphere);
    validate.source(
        &v.photon_persistent_disk,
        "photonPersistentDisk",
        cloud::validate_photon,
    );

    validate.source(
        &v.portworx_volume,
        "portworxVolume",
        cloud::validate_portworx,
    );
    validate.source(&v.azure_disk, "azureDisk", cloud::validate_azure_disk);
    validate.source(&v.storageos, "storageos", network::validate_storage_os);
    validate.source(&v.projected, "projected", |projected, at, errors| {
        projected::validate_projected(projected, at, options, errors);
    });

    validate.source(&v.scale_io, "scaleIO", network::validate_scale_io);
    validate.source(&v.csi, "csi", local::validate_csi);
    validate.source(&v.ephemeral, "ephemeral", |source, place, errors| {
        ephemeral::validate_ephemeral(source, &v.name, pod, at, place, errors);
    });
    validate.source(&v.image, "image", |image, at, errors| {
        files::validate_image(image, options.is_pod, at, errors)
    });

    if !validate.given {
        errors.push(FieldError::required(at, "must specify a volume type"));
    }
}

pub(super) struct Checker<'a> {
    pub(super) at: &'a Path<'a>,
    /// Whether a source was found already.
    pub(super) given: bool,
    pub(super) errors: &'a mut Errors,
}

impl Checker<'_> {
    pub(super) fn source<T>(
        &mut self,
        source: &Option<T>,
        name: &str,
        validate: impl FnOnce(&T, &Path<'_>, &mut Errors),
    ) {
        self.source_as(source, name, name, validate);
    }

    /// A source whose fields have another path than the source itself.
    pub(super) fn source_as<T>(
        &mut self,
        source: &Option<T>,
        name: &str,
        inner: &str,
        validate: impl FnOnce(&T, &Path<'_>, &mut Errors),
    ) {
        let Some(source) = source else { return };
        if self.given {
            let detail = "may not specify more than 1 volume type";
            self.errors
                .push(FieldError::forbidden(&self.at.field(name), detail));
        } else {
            validate(source, &self.at.field(inner), self.errors);
        }
        self.given = true;
    }
}
