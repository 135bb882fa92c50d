//! What a pod needs on its node, and which secrets a volume needs.

use coracle_api::{Map, Text, Value};

/// What a kubelet reads for a pod, all in the pod's namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    pub(crate) account: Text,
    pub(crate) secrets: Vec<Text>,
    pub(crate) config_maps: Vec<Text>,
    pub(crate) claims: Vec<Text>,
    pub(crate) resource_claims: Vec<Text>,
}

impl Needs {
    pub(super) fn of(pod: &Value) -> Needs {
        // A mirror pod needs nothing: a node that creates one must not get access to secrets that
        // way.
        if pod
            .meta()
            .annotation("kubernetes.io/config.mirror")
            .is_some()
        {
            return Needs::default();
        }
        Needs::of_spec(pod)
    }

    /// What a pod names, whatever it is.
    pub(crate) fn of_spec(pod: &Value) -> Needs {
        let empty = Map::new();
        let spec = pod.get("spec").and_then(Value::as_object).unwrap_or(&empty);
        let mut needs = Needs {
            account: Text::new(spec.text("serviceAccountName")),
            ..Needs::default()
        };

        needs.secrets.extend(
            spec.items("imagePullSecrets")
                .iter()
                .filter_map(|secret| name(secret, "name")),
        );

        for list in ["initContainers", "containers", "ephemeralContainers"] {
            for container in spec.items(list).iter().filter_map(Value::as_object) {
                needs.of_container(container);
            }
        }

        for volume in spec.items("volumes").iter().filter_map(Value::as_object) {
            needs.of_volume(volume, pod.meta().name());
        }

        needs.of_claims(spec, pod);

        needs
    }

    fn of_container(&mut self, container: &Map) {
        for source in container.items("envFrom") {
            self.secrets.extend(
                source
                    .get("secretRef")
                    .and_then(|secret| name(secret, "name")),
            );
            self.config_maps
                .extend(source.get("configMapRef").and_then(|map| name(map, "name")));
        }

        for variable in container.items("env") {
            let Some(source) = variable.get("valueFrom") else {
                continue;
            };
            self.secrets.extend(
                source
                    .get("secretKeyRef")
                    .and_then(|secret| name(secret, "name")),
            );

            self.config_maps.extend(
                source
                    .get("configMapKeyRef")
                    .and_then(|map| name(map, "name")),
            );
        }
    }

    fn of_volume(&mut self, volume: &Map, pod: &str) {
        let of = |source: &str, field| volume.get(source).and_then(|source| name(source, field));
        self.secrets.extend(of("secret", "secretName"));
        self.secrets.extend(of("azureFile", "secretName"));

        for source in [
            "cephfs",
            "cinder",
            "flexVolume",
            "rbd",
            "scaleIO",
            "iscsi",
            "storageos",
        ] {
            let secret = volume
                .get(source)
                .and_then(|source| name(source.get("secretRef")?, "name"));
            self.secrets.extend(secret);
        }

        let csi = volume
            .get("csi")
            .and_then(|csi| name(csi.get("nodePublishSecretRef")?, "name"));
        self.secrets.extend(csi);
        self.config_maps.extend(of("configMap", "name"));
        self.claims.extend(of("persistentVolumeClaim", "claimName"));

        if volume
            .get("ephemeral")
            .is_some_and(|source| !source.is_null())
        {
            self.claims
                .push(Text::new(format!("{pod}-{}", volume.text("name"))));
        }

        let sources = volume
            .get("projected")
            .and_then(|projected| projected.get("sources")?.as_array());
        for source in sources.unwrap_or_default() {
            self.secrets
                .extend(source.get("secret").and_then(|secret| name(secret, "name")));
            self.config_maps
                .extend(source.get("configMap").and_then(|map| name(map, "name")));
        }
    }

    fn of_claims(&mut self, spec: &Map, pod: &Value) {
        let made = pod
            .at(&["status", "resourceClaimStatuses"])
            .and_then(Value::as_array)
            .unwrap_or_default();

        for claim in spec.items("resourceClaims") {
            let from_template = claim
                .get("resourceClaimTemplateName")
                .is_some_and(|name| !name.is_null());
            self.resource_claims.extend(match from_template {
                false => name(claim, "resourceClaimName"),
                // Its status has the name of the claim made from the template.
                true => made
                    .iter()
                    .find(|made| made.get("name") == claim.get("name"))
                    .and_then(|made| name(made, "resourceClaimName")),
            });
        }

        let extended = pod.at(&["status", "extendedResourceClaimStatus"]);
        self.resource_claims
            .extend(extended.and_then(|status| name(status, "resourceClaimName")));
    }
}

/// The claim that a volume is bound to, and the secrets that a kubelet needs to use it:
/// `namespace/name`.
pub(super) fn of_volume(volume: &Value) -> Option<(Text, Vec<Text>)> {
    let spec = volume.get("spec")?.as_object()?;
    let claim = spec.get("claimRef")?.as_object()?;

    let namespace = claim.text("namespace");
    let key = |secret: &Value, namespace: &str| {
        let own = secret
            .get("namespace")
            .and_then(Value::as_str)
            .filter(|own| !own.is_empty());
        let name = name(secret, "name")?;
        Some(Text::new(format!("{}/{name}", own.unwrap_or(namespace))))
    };

    let mut secrets = Vec::new();
    if let Some(file) = spec.get("azureFile")
        && let Some(secret) = name(file, "secretName")
    {
        let own = file
            .get("secretNamespace")
            .and_then(Value::as_str)
            .filter(|own| !own.is_empty());
        secrets.push(Text::new(format!("{}/{secret}", own.unwrap_or(namespace))));
    }

    for source in [
        "cephfs",
        "cinder",
        "flexVolume",
        "rbd",
        "scaleIO",
        "iscsi",
        "storageos",
    ] {
        secrets.extend(
            spec.get(source)
                .and_then(|source| key(source.get("secretRef")?, namespace)),
        );
    }

    for reference in [
        "nodePublishSecretRef",
        "nodeStageSecretRef",
        "nodeExpandSecretRef",
    ] {
        secrets.extend(
            spec.get("csi")
                .and_then(|csi| key(csi.get(reference)?, namespace)),
        );
    }

    Some((
        Text::new(format!("{namespace}/{}", claim.text("name"))),
        secrets,
    ))
}

/// A name that is set and not empty.
fn name(object: &Value, field: &str) -> Option<Text> {
    object
        .get(field)
        .and_then(Value::as_str)
        .filter(|name| !name.is_empty())
        .map(Text::new)
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::yaml;

    use super::*;

    #[test]
    fn a_pod_needs_whatever_it_names() {
        let pod = yaml::decode(
            b"metadata: {name: web, namespace: a}
spec:
  serviceAccountName: sa
  imagePullSecrets: [{name: pull}]
  initContainers: [{env: [{valueFrom: {secretKeyRef: {name: init}}}]}]
  containers:
  - envFrom: [{secretRef: {name: all}}, {configMapRef: {name: allmap}}]
    env: [{valueFrom: {configMapKeyRef: {name: onemap}}}, {value: x}]
  volumes:
  - {name: a, secret: {secretName: vol}}
  - {name: b, configMap: {name: volmap}}
  - {name: c, projected: {sources: [{secret: {name: proj}}, {configMap: {name: projmap}}]}}
  - {name: d, persistentVolumeClaim: {claimName: claim}}
  - {name: e, ephemeral: {volumeClaimTemplate: {}}}
  - {name: f, csi: {driver: x, nodePublishSecretRef: {name: csi}}}
  resourceClaims:
  - {name: one, resourceClaimName: direct}
  - {name: two, resourceClaimTemplateName: t}
status: {resourceClaimStatuses: [{name: two, resourceClaimName: made}]}
",
        )
        .unwrap();
        let needs = Needs::of(&pod);
        assert_eq!(needs.account, "sa");

        assert_eq!(needs.secrets, ["pull", "init", "all", "vol", "proj", "csi"]);

        assert_eq!(needs.config_maps, ["allmap", "onemap", "volmap", "projmap"]);
        assert_eq!(needs.claims, ["claim", "web-e"]);
        assert_eq!(needs.resource_claims, ["direct", "made"]);
    }

    #[test]
    fn a_mirror_of_a_static_pod_needs_nothing() {
        let text = "{metadata: {name: m, annotations: {kubernetes.io/config.mirror: x}}, spec: {volumes: [{secret: {secretName: s}}]}}";
        assert_eq!(
            Needs::of(&yaml::decode(text.as_bytes()).unwrap()),
            Needs::default()
        );
    }
}
