//! What a volume is, of the kinds that there are.

use std::collections::BTreeSet;

use coracle_api::go_text::Quoted;
use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, DownwardAPIVolumeSource, EmptyDirVolumeSource, HostPathVolumeSource,
    Pod, ProjectedVolumeSource, SecretVolumeSource, Volume,
};

use super::empty_dir;
use crate::pod::PodView as _;

/// A volume of a kind that can be set up.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source<'a> {
    EmptyDir(&'a EmptyDirVolumeSource),
    HostPath(&'a HostPathVolumeSource),
    ConfigMap(&'a ConfigMapVolumeSource),
    Secret(&'a SecretVolumeSource),
    DownwardApi(&'a DownwardAPIVolumeSource),
    Projected(&'a ProjectedVolumeSource),
}

/// A volume of a kind that this node cannot set up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "MountVolume.FindPluginBySpec failed for volume {} : {kind} volumes are not supported by this node",
    Quoted(name)
)]
pub(super) struct Refused {
    name: String,
    kind: &'static str,
}

/// What a volume is. One that says nothing is an empty folder.
pub(super) fn of(volume: &Volume) -> Result<Source<'_>, Refused> {
    if let Some(source) = &volume.config_map {
        return Ok(Source::ConfigMap(source));
    }
    if let Some(source) = &volume.secret {
        return Ok(Source::Secret(source));
    }
    if let Some(source) = &volume.downward_api {
        return Ok(Source::DownwardApi(source));
    }

    if let Some(source) = &volume.projected {
        return Ok(Source::Projected(source));
    }
    if let Some(source) = &volume.host_path {
        return Ok(Source::HostPath(source));
    }
    if let Some(source) = &volume.empty_dir {
        return Ok(Source::EmptyDir(source));
    }

    Err(Refused {
        name: volume.name.clone(),
        kind: other_kind(volume),
    })
}

/// The folder of a volume's kind below `volumes`; host paths have none.
pub(super) fn plugin(volume: &Volume) -> Option<&'static str> {
    match of(volume).ok()? {
        Source::EmptyDir(_) => Some(empty_dir::PLUGIN),
        Source::ConfigMap(_) => Some("kubernetes.io~configmap"),
        Source::Secret(_) => Some("kubernetes.io~secret"),
        Source::DownwardApi(_) => Some("kubernetes.io~downward-api"),
        Source::Projected(_) => Some("kubernetes.io~projected"),
        Source::HostPath(_) => None,
    }
}

/// All folders that [`plugin`] knows.
pub(super) const PLUGINS: [&str; 5] = [
    empty_dir::PLUGIN,
    "kubernetes.io~configmap",
    "kubernetes.io~secret",
    "kubernetes.io~downward-api",
    "kubernetes.io~projected",
];

/// The volumes that a container mounts: what nobody mounts is not made, and cannot fail.
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

        // A file of variables is read from a volume whether or not this container mounts it.
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

fn other_kind(volume: &Volume) -> &'static str {
    let kinds = [
        (
            volume.persistent_volume_claim.is_some(),
            "persistentVolumeClaim",
        ),
        (volume.ephemeral.is_some(), "ephemeral"),
        (volume.csi.is_some(), "csi"),
        (volume.image.is_some(), "image"),
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
