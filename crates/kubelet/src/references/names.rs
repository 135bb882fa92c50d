//! The ConfigMaps and Secrets that a pod references.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{EnvFromSource, EnvVarSource, Pod, VolumeProjection};

use crate::pod::{PodView as _, of_ephemeral};

/// The ConfigMaps of volumes and environments.
pub(crate) fn config_maps(pod: &Pod) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for volume in pod.pod_spec().volumes.iter().flatten() {
        names.extend(volume.config_map.as_ref().map(|source| source.name.clone()));
    }

    names.extend(projections(pod).filter_map(|part| Some(part.config_map.as_ref()?.name.clone())));

    for (each, all) in environments(pod) {
        names.extend(
            all.iter()
                .filter_map(|from| Some(from.config_map_ref.as_ref()?.name.clone())),
        );
        names.extend(
            each.iter()
                .filter_map(|from| Some(from.config_map_key_ref.as_ref()?.name.clone())),
        );
    }

    named(names)
}

/// The Secrets of volumes, environments and image pulls.
pub(crate) fn secrets(pod: &Pod) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let spec = pod.pod_spec();
    names.extend(
        spec.image_pull_secrets
            .iter()
            .flatten()
            .map(|secret| secret.name.clone()),
    );

    for volume in spec.volumes.iter().flatten() {
        names.extend(
            volume
                .secret
                .as_ref()
                .and_then(|source| source.secret_name.clone()),
        );
    }

    names.extend(projections(pod).filter_map(|part| Some(part.secret.as_ref()?.name.clone())));

    for (each, all) in environments(pod) {
        names.extend(
            all.iter()
                .filter_map(|from| Some(from.secret_ref.as_ref()?.name.clone())),
        );
        names.extend(
            each.iter()
                .filter_map(|from| Some(from.secret_key_ref.as_ref()?.name.clone())),
        );
    }

    named(names)
}

fn projections(pod: &Pod) -> impl Iterator<Item = &VolumeProjection> {
    let volumes = pod.pod_spec().volumes.iter().flatten();
    volumes
        .filter_map(|volume| volume.projected.as_ref()?.sources.as_ref())
        .flatten()
}

/// The `env` and `envFrom` sources of each container.
fn environments(pod: &Pod) -> Vec<(Vec<EnvVarSource>, Vec<EnvFromSource>)> {
    let lasting = pod
        .lasting_containers()
        .map(|(_, container)| container.clone());

    let containers = lasting.chain(pod.ephemeral_containers().iter().map(of_ephemeral));
    let sources = containers.map(|container| {
        let each = container
            .env
            .unwrap_or_default()
            .into_iter()
            .filter_map(|variable| variable.value_from);
        (each.collect(), container.env_from.unwrap_or_default())
    });

    sources.collect()
}

/// Old pods may have empty references.
fn named(mut names: BTreeSet<String>) -> BTreeSet<String> {
    names.remove("");
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    const POD: &str = r#"{"metadata":{"name":"p"},"spec":{
        "imagePullSecrets":[{"name":"pull"},{"name":""}],
        "volumes":[{"name":"a","configMap":{"name":"cm-volume"}},{"name":"b","secret":{"secretName":"s-volume"}},
          {"name":"c","projected":{"sources":[{"configMap":{"name":"cm-part"}},{"secret":{"name":"s-part"}}]}}],
        "initContainers":[{"name":"i","envFrom":[{"configMapRef":{"name":"cm-from"}},{"secretRef":{"name":"s-from"}}]}],
        "ephemeralContainers":[{"name":"e","env":[{"name":"V","valueFrom":{"secretKeyRef":{"name":"s-debug","key":"k"}}}]}],
        "containers":[{"name":"m","env":[{"name":"V","valueFrom":{"configMapKeyRef":{"name":"cm-key","key":"k"}}},
          {"name":"W","valueFrom":{"secretKeyRef":{"name":"s-key","key":"k"}}},{"name":"X","value":"y"}]}]}}"#;

    #[test]
    fn references_of_volumes_and_containers_are_found() {
        let pod: Pod = serde_json::from_str(POD).unwrap();
        assert_eq!(
            Vec::from_iter(config_maps(&pod)),
            ["cm-from", "cm-key", "cm-part", "cm-volume"]
        );
        assert_eq!(
            Vec::from_iter(secrets(&pod)),
            ["pull", "s-debug", "s-from", "s-key", "s-part", "s-volume"]
        );
    }
}
