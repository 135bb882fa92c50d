//! `volumeMounts` and `volumeDevices`: where a container mounts the pod's volumes.

use std::collections::BTreeSet;

use coracle_api::Path;
use coracle_api::field_error::FieldError;
use coracle_api::names::path_without_backsteps;
use k8s_openapi::api::core::v1::{Container, VolumeMount};

use super::super::{Frame, path, validate_enum, validate_required};
use crate::strategy::Errors;
use crate::validate::{items, text};

pub(super) fn validate_mounts(
    container: &Container,
    frame: &Frame<'_>,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let devices = items(&container.volume_devices);
    let names: BTreeSet<&str> = devices.iter().map(|device| device.name.as_str()).collect();
    let paths: BTreeSet<&str> = devices
        .iter()
        .map(|device| device.device_path.as_str())
        .collect();

    let mut places = BTreeSet::new();
    for (index, mount) in items(&container.volume_mounts).iter().enumerate() {
        let place = at.index(index);
        let (name, mount_path) = (place.field("name"), place.field("mountPath"));
        let invalid =
            |at: &Path<'_>, found: &str, detail: &str| FieldError::invalid_str(at, found, detail);
        validate_required(&mount.name, &name, errors);

        if !frame.volumes.contains_key(mount.name.as_str()) {
            errors.push(FieldError::not_found(&name, &mount.name));
        }

        validate_required(&mount.mount_path, &mount_path, errors);

        if !places.insert(&mount.mount_path) {
            errors.push(invalid(&mount_path, &mount.mount_path, "must be unique"));
        }

        if names.contains(mount.name.as_str()) {
            errors.push(invalid(
                &name,
                &mount.name,
                "must not already exist in volumeDevices",
            ));
        }

        if paths.contains(mount.mount_path.as_str()) {
            let detail = "must not already exist as a path in volumeDevices";
            errors.push(invalid(&mount_path, &mount.mount_path, detail));
        }

        // From here on upstream's paths lack the index of the mount, except for one.
        let (sub_path, expression) = (text(&mount.sub_path), text(&mount.sub_path_expr));
        path::validate_descending_path(sub_path, &at.field("subPath"), errors);

        if !expression.is_empty() && !sub_path.is_empty() {
            let detail = "subPathExpr and subPath are mutually exclusive";
            errors.push(invalid(&place.field("subPathExpr"), expression, detail));
        }

        path::validate_descending_path(expression, &at.field("subPathExpr"), errors);
        validate_propagation(mount, container, at, errors);
    }
}

fn validate_propagation(
    mount: &VolumeMount,
    container: &Container,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let privileged = container
        .security_context
        .as_ref()
        .and_then(|context| context.privileged)
        == Some(true);

    if let Some(propagation) = &mount.mount_propagation {
        let place = at.field("mountPropagation");
        validate_enum(
            propagation,
            &["Bidirectional", "HostToContainer", "None"],
            &place,
            errors,
        );

        if propagation == "Bidirectional" && !privileged {
            let detail =
                "Bidirectional mount propagation is available only to privileged containers";
            errors.push(FieldError::forbidden(&place, detail));
        }
    }

    let place = at.field("recursiveReadOnly");
    match mount.recursive_read_only.as_deref() {
        None | Some("Disabled") => {}
        Some("Enabled" | "IfPossible") => {
            if mount.read_only != Some(true) {
                errors.push(FieldError::forbidden(
                    &place,
                    "may only be specified when readOnly is true",
                ));
            }

            if mount
                .mount_propagation
                .as_deref()
                .is_some_and(|propagation| propagation != "None")
            {
                let detail = "may only be specified when mountPropagation is None or not specified";
                errors.push(FieldError::forbidden(&place, detail));
            }
        }
        Some(other) => validate_enum(
            other,
            &["Disabled", "Enabled", "IfPossible"],
            &place,
            errors,
        ),
    }
}

pub(super) fn validate_devices(
    container: &Container,
    frame: &Frame<'_>,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let mounts = items(&container.volume_mounts);
    let mounted: BTreeSet<&str> = mounts.iter().map(|mount| mount.name.as_str()).collect();
    let mount_paths: BTreeSet<&str> = mounts
        .iter()
        .map(|mount| mount.mount_path.as_str())
        .collect();

    let (mut names, mut paths) = (BTreeSet::new(), BTreeSet::new());
    for (index, device) in items(&container.volume_devices).iter().enumerate() {
        let at = at.index(index);
        let (name, device_path) = (at.field("name"), at.field("devicePath"));
        let (found, found_path) = (device.name.as_str(), device.device_path.as_str());
        validate_required(found, &name, errors);

        let mut invalid = |at: &Path<'_>, found: &str, detail: &str| {
            errors.push(FieldError::invalid_str(at, found, detail));
        };
        if !found.is_empty() && !names.insert(found) {
            invalid(&name, found, "must be unique");
        }

        match frame.volumes.get(found) {
            Some(volume)
                if volume.persistent_volume_claim.is_some() || volume.ephemeral.is_some() => {}
            Some(_) => {
                let detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                invalid(&name, found, detail);
            }
            None => errors.push(FieldError::not_found(&name, found)),
        }

        validate_required(found_path, &device_path, errors);
        let mut invalid = |at: &Path<'_>, found: &str, detail: &str| {
            errors.push(FieldError::invalid_str(at, found, detail));
        };
        if paths.contains(found_path) {
            invalid(&device_path, found_path, "must be unique");
        }

        if path_without_backsteps(found_path).is_empty() {
            paths.insert(found_path);
        } else {
            invalid(&device_path, found_path, "can not contain backsteps ('..')");
        }

        if mounted.contains(found) {
            invalid(&name, found, "must not already exist in volumeMounts");
        }

        if mount_paths.contains(found_path) {
            invalid(
                &device_path,
                found_path,
                "must not already exist as a path in volumeMounts",
            );
        }
    }
}
