//! The volumes that a pod uses, and volume types that are not supported.

use std::collections::BTreeSet;

use coracle_api::go_text::Quoted;
use k8s_openapi::api::core::v1::{Pod, Volume};

use crate::pod::PodView as _;

/// A volume of a type that this node does not support.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "MountVolume.FindPluginBySpec failed for volume {} : {kind} volumes are not supported by this node",
    Quoted(name)
)]
pub(super) struct Unsupported {
    name: String,
    kind: &'static str,
}

impl Unsupported {
    pub(super) fn of(volume: &Volume) -> Unsupported {
        Unsupported {
            name: volume.name.clone(),
            kind: unsupported_kind(volume),
        }
    }
}

/// The volumes that containers use: others are not set up, and cannot fail.
pub(super) fn used_volumes(pod: &Pod) -> impl Iterator<Item = &Volume> {
    let spec = pod.pod_spec();
    let mut used = BTreeSet::new();
    for (_, container) in pod.lasting_containers() {
        used.extend(
            container
                .volume_mounts
                .iter()
                .flatten()
                .map(|mount| mount.name.as_str()),
        );

        used.extend(
            container
                .volume_devices
                .iter()
                .flatten()
                .map(|device| device.name.as_str()),
        );

        // An environment file is read from a volume whether or not the container mounts it.
        let sources = container
            .env
            .iter()
            .flatten()
            .filter_map(|variable| variable.value_from.as_ref());

        used.extend(
            sources.filter_map(|source| Some(source.file_key_ref.as_ref()?.volume_name.as_str())),
        );
    }

    for container in pod.ephemeral_containers() {
        used.extend(
            container
                .volume_mounts
                .iter()
                .flatten()
                .map(|mount| mount.name.as_str()),
        );
    }

    spec.volumes
        .iter()
        .flatten()
        .filter(move |volume| used.contains(volume.name.as_str()))
}

fn unsupported_kind(volume: &Volume) -> &'static str {
    let kinds = [
        (
            volume.persistent_volume_claim.is_some(),
            "persistentVolumeClaim",
        ),
        (volume.ephemeral.is_some(), "ephemeral"),
        (volume.csi.is_some(), "csi"),
        (volume.nfs.is_some(), "nfs"),
        (volume.iscsi.is_some(), "iscsi"),
        (volume.fc.is_some(), "fc"),
        (volume.flex_volume.is_some(), "flexVolume"),
        (volume.git_repo.is_some(), "gitRepo"),
    ];

    kinds
        .into_iter()
        .find(|(is, _)| *is)
        .map_or("such", |(_, kind)| kind)
}
