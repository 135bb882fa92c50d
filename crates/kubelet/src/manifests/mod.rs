//! Static pods: pods from manifest files instead of the API server.
//!
//! The directory is read on changes (`watch.rs`) and periodically. An invalid manifest
//! (`validation.rs`) is logged and skipped. Name and UID derive from the manifest, the node and the
//! file: after a restart the same file yields the same pod.

mod sys;
mod validation;
mod watch;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use coracle_api::catalog::BUILTIN;
use coracle_api::codec::yaml;
use coracle_api::field_error::{FieldError, FieldErrors};
use coracle_api::schema::TooMuchAdded;
use coracle_api::time::{Time, Timestamp};
use coracle_api::{Map, Value, defaults, typed};
use coracle_base::error_chain;
use k8s_openapi::api::core::v1::Pod;
use tokio::sync::mpsc;

pub(crate) use watch::follow;

/// Size limit of a manifest.
const LARGEST: u64 = 10 << 20;

/// The pods of a directory at one moment, by UID.
pub(crate) type Manifests = BTreeMap<String, Arc<Pod>>;

/// Receives new states of the directory.
pub(crate) type Changes = mpsc::Receiver<Manifests>;

/// Why a file is not a valid manifest.
#[derive(Debug, thiserror::Error)]
enum ManifestError {
    #[error("cannot read the file")]
    Read(#[from] std::io::Error),
    #[error("the file is larger than 10 MiB")]
    TooLarge,
    #[error("invalid YAML: {0}")]
    Yaml(String),
    #[error("not a Pod of apiVersion v1")]
    NotAPod,
    #[error("{0}")]
    Typed(#[from] typed::TypedError),
    #[error("invalid pod: {}", texts(.0))]
    Invalid(FieldErrors),
    #[error("{0}")]
    TooManyDefaults(TooMuchAdded),
    #[error("static pods may not reference {0}")]
    NeedsApi(&'static str),
}

/// All pods of a directory, or of one file. A missing path has none.
fn read_all(place: &Path, node: &str, now: Timestamp) -> Manifests {
    let mut pods = Manifests::new();
    for file in files(place) {
        match read_file(&file, node, now) {
            Ok(pod) => {
                drop(pods.insert(pod.metadata.uid.clone().unwrap_or_default(), Arc::new(pod)))
            }
            Err(error) => {
                let error = error_chain(&error);
                tracing::warn!(file = %file.display(), error, "cannot load static pod manifest");
            }
        }
    }

    pods
}

/// The files of a directory without hidden ones, not recursive.
fn files(place: &Path) -> Vec<PathBuf> {
    if place.is_file() {
        return vec![place.to_owned()];
    }
    let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
    let visible = entries.filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'));
    let mut files: Vec<PathBuf> = visible
        .map(|entry| entry.path())
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    files
}

fn read_file(file: &Path, node: &str, now: Timestamp) -> Result<Pod, ManifestError> {
    if std::fs::metadata(file)?.len() > LARGEST {
        return Err(ManifestError::TooLarge);
    }
    read(&std::fs::read(file)?, file, node, now)
}

/// The pod of a manifest on this node.
fn read(text: &[u8], file: &Path, node: &str, now: Timestamp) -> Result<Pod, ManifestError> {
    let mut tree = yaml::decode(text).map_err(|error| ManifestError::Yaml(error.to_string()))?;
    let named = |name: &str| {
        tree.get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let kind = BUILTIN.kind_of(&named("apiVersion"), &named("kind"));

    let kind = kind.filter(|_| (named("apiVersion"), named("kind")) == ("v1".into(), "Pod".into()));
    let kind = kind.ok_or(ManifestError::NotAPod)?;
    defaults::apply(&mut tree, kind, now).map_err(ManifestError::TooManyDefaults)?;

    let hash = hash(&[node.as_bytes(), file.to_string_lossy().as_bytes(), text]);
    let uid = Some(tree.meta().uid().to_owned())
        .filter(|uid| !uid.is_empty())
        .unwrap_or_else(|| hash.clone());
    let name = format!("{}-{}", tree.meta().name(), node.to_lowercase());
    let namespace =
        Some(tree.meta().namespace().to_owned()).filter(|namespace| !namespace.is_empty());

    let Some(pod) = tree.as_object_mut() else {
        return Err(ManifestError::NotAPod);
    };
    let metadata = pod.object_mut("metadata");
    metadata.insert("name", name);
    metadata.insert(
        "namespace",
        namespace.unwrap_or_else(|| "default".to_owned()),
    );

    metadata.insert("uid", uid);
    let annotations = metadata.object_mut("annotations");
    annotations.insert("kubernetes.io/config.hash", hash);
    annotations.insert("kubernetes.io/config.seen", Value::String(Time(now).text()));
    annotations.insert("kubernetes.io/config.source", "file");

    let spec = pod.object_mut("spec");
    spec.insert("nodeName", node);
    tolerate_eviction(spec);
    pod.object_mut("status").insert("phase", "Pending");
    let pod: Pod = typed::from_tree(&tree)?;

    let errors = validation::validate(&pod);
    if !errors.is_empty() {
        return Err(ManifestError::Invalid(errors));
    }

    match validation::api_object(&pod) {
        Some(what) => Err(ManifestError::NeedsApi(what)),
        None => Ok(pod),
    }
}

fn texts(errors: &[FieldError]) -> String {
    errors
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Static pods are not evicted by taints.
fn tolerate_eviction(spec: &mut Map) {
    let mut toleration = Map::new();
    toleration.insert("effect", "NoExecute");
    toleration.insert("operator", "Exists");
    let mut all = match spec.remove("tolerations") {
        Some(Value::Array(all)) => all,
        _ => Vec::new(),
    };
    all.push(Value::Object(toleration));
    spec.insert("tolerations", Value::Array(all));
}

/// A hash of 32 hexadecimal digits.
fn hash(parts: &[&[u8]]) -> String {
    let half = |seed: u64| {
        let bytes = parts
            .iter()
            .flat_map(|part| part.iter().copied().chain([0xff]));
        // FNV-1a.
        bytes.fold(seed, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    };

    format!(
        "{:016x}{:016x}",
        half(0xcbf2_9ce4_8422_2325),
        half(0x9e37_79b9_7f4a_7c15)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::PodView as _;

    const MANIFEST: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: c, image: i}]}\n";

    fn read(text: &str) -> Result<Pod, ManifestError> {
        super::read(
            text.as_bytes(),
            Path::new("/m/web.yaml"),
            "N1",
            Timestamp::from_unix(0, 0),
        )
    }

    #[test]
    fn a_manifest_is_a_pod_of_this_node() {
        let pod = read(MANIFEST).unwrap();
        assert_eq!(pod.metadata.name.as_deref(), Some("web-n1"));
        assert_eq!(pod.namespace(), "default");
        assert_eq!(pod.annotation("kubernetes.io/config.source"), Some("file"));

        assert_eq!(pod.annotation("kubernetes.io/config.hash"), Some(pod.uid()));
        assert_eq!(pod.pod_spec().node_name.as_deref(), Some("N1"));
        assert_eq!(
            pod.pod_spec().containers[0]
                .termination_message_path
                .as_deref(),
            Some("/dev/termination-log")
        );

        assert_eq!(read(MANIFEST).unwrap().uid(), pod.uid());
        assert_ne!(
            read(&MANIFEST.replace("image: i", "image: j"))
                .unwrap()
                .uid(),
            pod.uid()
        );
    }

    #[test]
    fn files_that_are_no_manifest_are_refused() {
        assert!(matches!(read("kind: [\n"), Err(ManifestError::Yaml(_))));
        assert!(matches!(
            read("apiVersion: apps/v1\nkind: Deployment\n"),
            Err(ManifestError::NotAPod)
        ));
    }

    #[test]
    fn an_invalid_pod_is_refused() {
        let check = |name: &str, spec: &str, expected: &str| {
            let text = format!("apiVersion: v1\nkind: Pod\nmetadata: {name}\nspec: {spec}\n");
            assert_eq!(
                read(&text).unwrap_err().to_string(),
                expected,
                "{name} {spec}"
            );
        };

        let good = "{containers: [{name: c, image: i}]}";
        let with = |rest: &str| format!("{{containers: [{{name: c, image: i}}], {rest}}}");
        let no_pod = "invalid pod: ";
        let image = format!("{no_pod}spec.containers[0].image: Required value");
        check("{name: web}", "{containers: [{name: c}]}", &image);

        let spaced = "spec.containers[0].image: Invalid value: \"i \": must not have leading or trailing whitespace";
        check(
            "{name: web}",
            "{containers: [{name: c, image: 'i '}]}",
            &format!("{no_pod}{spaced}"),
        );

        check(
            "{name: web}",
            "{}",
            &format!("{no_pod}spec.containers: Required value"),
        );

        let both =
            "spec.containers[0].name: Required value, spec.containers[0].image: Required value";
        check(
            "{name: web}",
            "{containers: [{args: [a]}]}",
            &format!("{no_pod}{both}"),
        );

        let twice = with("initContainers: [{name: c, image: i}]");
        let again = format!("{no_pod}spec.initContainers[0].name: Duplicate value: \"c\"");
        check("{name: web}", &twice, &again);

        let nameless = read(&MANIFEST.replace("name: web", "labels: {a: b}"))
            .unwrap_err()
            .to_string();
        assert!(
            nameless.starts_with("invalid pod: metadata.name: Invalid value: \"-n1\": "),
            "{nameless}"
        );

        let space = read(&MANIFEST.replace("name: web", "name: web, namespace: A"))
            .unwrap_err()
            .to_string();
        assert!(
            space.starts_with("invalid pod: metadata.namespace: Invalid value: \"A\": "),
            "{space}"
        );

        for (rest, what) in [
            ("serviceAccountName: a", "serviceaccounts"),
            ("volumes: [{name: v, secret: {secretName: s}}]", "secrets"),
            ("volumes: [{name: v, configMap: {name: m}}]", "configmaps"),
            (
                "resourceClaims: [{name: r, resourceClaimName: r}]",
                "resourceclaims",
            ),
            (
                "volumes: [{name: v, persistentVolumeClaim: {claimName: p}}]",
                "persistentvolumeclaims",
            ),
        ] {
            check(
                "{name: web}",
                &with(rest),
                &format!("static pods may not reference {what}"),
            );
        }

        assert!(
            read(&format!(
                "apiVersion: v1\nkind: Pod\nmetadata: {{name: web}}\nspec: {good}\n"
            ))
            .is_ok()
        );
    }
}
