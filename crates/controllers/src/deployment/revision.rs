//! Revisions: which ReplicaSet is a Deployment's newest, its name and its annotations. Pure.

use std::sync::Arc;

use coracle_api::owner::OwnerReference;
use coracle_api::{Map, Value};
use coracle_client::Cached;

use crate::template;
use crate::views::{Deployment, ReplicaSet};

/// The label that keeps the pods of two ReplicaSets of one Deployment apart.
pub const HASH: &str = "pod-template-hash";
/// The revision of a ReplicaSet; on the Deployment: the current one.
pub const REVISION: &str = "deployment.kubernetes.io/revision";
/// Earlier revisions of the same ReplicaSet.
pub const HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// The Deployment's desired replicas when it last resized the ReplicaSet.
pub const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
/// The Deployment's maximum replicas then.
pub const MAXIMUM: &str = "deployment.kubernetes.io/max-replicas";
/// The revision to roll back to.
pub const ROLLBACK: &str = "deprecated.deployment.rollback.to";

/// Annotations of a Deployment that are not copied to its ReplicaSets.
const NOT_COPIED: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    HISTORY,
    DESIRED,
    MAXIMUM,
    ROLLBACK,
];
/// The most characters of the revision history.
const HISTORY_LENGTH: usize = 2000;
/// The most characters of name, dash and hash together.
const NAME_LENGTH: usize = 253;

/// A ReplicaSet of the cache.
pub type Set = Arc<Cached<ReplicaSet>>;

/// The revision of a ReplicaSet; 0 if it has none.
pub fn revision(set: &ReplicaSet) -> i64 {
    set.object
        .meta()
        .annotation(REVISION)
        .and_then(|text| text.parse().ok())
        .unwrap_or_default()
}

/// The ReplicaSet of the Deployment's template: the oldest, if there are several.
pub fn newest<'a>(deployment: &Deployment, sets: &'a [Set]) -> Option<&'a Set> {
    let same = sets
        .iter()
        .filter(|set| same_template(set.template(), deployment.template()));
    same.min_by(|a, b| age(a).cmp(&age(b)))
}

/// By age, then by name.
pub fn age(set: &Set) -> (Option<coracle_api::time::Timestamp>, &str) {
    (set.object.object.meta().creation_timestamp(), &set.key.name)
}

/// Whether two templates are equal, except for the hash label.
pub fn same_template(one: Option<&Value>, other: Option<&Value>) -> bool {
    one.map(without_hash) == other.map(without_hash)
}

/// A template in the form used for comparison: empty equals absent.
fn without_hash(template: &Value) -> Value {
    let mut template = template.clone();
    template.meta_mut().set_label(HASH, None);
    template::comparable(&template)
}

/// Builds the ReplicaSet for the Deployment's template, with zero replicas.
pub fn new_set(deployment: &Cached<Deployment>, revision: i64) -> Value {
    let comparable = deployment.template().map(without_hash).unwrap_or_default();
    let hash = template::hash(&comparable, collisions(deployment));
    let name = &deployment.key.name;
    let kept = name.len().min(NAME_LENGTH - hash.len() - 1);

    let mut template = deployment.template().cloned().unwrap_or_default();
    template.meta_mut().set_label(HASH, Some(&hash));
    let mut selector = deployment
        .object
        .object
        .at(&["spec", "selector"])
        .cloned()
        .unwrap_or_default();

    if let Some(selector) = selector.as_object_mut() {
        selector
            .object_mut("matchLabels")
            .insert(HASH, hash.as_str());
    }

    let mut spec = Map::new();
    spec.insert("replicas", 0);
    spec.insert("minReadySeconds", deployment.min_ready_seconds());
    spec.insert("selector", selector);
    spec.insert("template", template.clone());
    let mut set = Map::new();
    set.insert("apiVersion", "apps/v1");

    set.insert("kind", "ReplicaSet");
    set.insert("spec", spec);
    let mut set = Value::Object(set);
    let mut meta = set.meta_mut();
    meta.set_namespace(&deployment.key.namespace);
    meta.set_name(&format!("{}-{hash}", &name[..kept]));
    meta.set_labels(template.meta().labels().cloned().unwrap_or_default());

    let owner = deployment.object.object.meta();
    meta.set_owner_references([OwnerReference::to_controller(
        owner,
        "apps/v1",
        "Deployment",
    )]);

    annotate(&mut set, deployment, revision);
    set_sizes(&mut set, deployment);

    set
}

fn collisions(deployment: &Deployment) -> Option<i64> {
    deployment
        .status()
        .and_then(|status| status.get("collisionCount"))
        .and_then(Value::as_int)
}

/// Sets the annotations of the newest ReplicaSet: the Deployment's own, the revision and the
/// earlier revisions.
pub fn annotate(set: &mut Value, deployment: &Deployment, revision: i64) {
    let copied = deployment
        .object
        .meta()
        .annotations()
        .into_iter()
        .flat_map(Map::iter);

    let copied: Vec<_> = copied
        .filter(|(key, _)| !NOT_COPIED.contains(key))
        .collect();
    let before = set.meta().annotation(REVISION).map(ToOwned::to_owned);
    let history = set.meta().annotation(HISTORY).map(ToOwned::to_owned);

    let mut meta = set.meta_mut();
    for (key, value) in copied {
        meta.set_annotation(key, value.as_str());
    }

    let was = before
        .as_deref()
        .map_or(Some(0), |text| text.parse::<i64>().ok());
    if was.is_some_and(|was| was < revision) {
        meta.set_annotation(REVISION, Some(&revision.to_string()));
        if let Some(before) = before {
            meta.set_annotation(HISTORY, Some(&longer_history(history.as_deref(), &before)));
        }
    }
}

/// The history with one more entry, without the oldest that no longer fit.
fn longer_history(history: Option<&str>, revision: &str) -> String {
    let mut all: Vec<&str> = history
        .into_iter()
        .flat_map(|text| text.split(','))
        .collect();
    all.push(revision);
    while all.len() > 1 && all.iter().map(|one| one.len() + 1).sum::<usize>() > HISTORY_LENGTH {
        all.remove(0);
    }
    all.join(",")
}

/// Sets the annotations with the Deployment's desired and maximum replicas.
pub fn set_sizes(set: &mut Value, deployment: &Deployment) {
    let wanted = deployment.replicas();
    let mut meta = set.meta_mut();
    meta.set_annotation(DESIRED, Some(&wanted.to_string()));
    meta.set_annotation(MAXIMUM, Some(&(wanted + deployment.surge()).to_string()));
}

/// A number in an annotation of a ReplicaSet.
pub fn annotation_number(set: &ReplicaSet, annotation: &str) -> Option<i64> {
    set.object.meta().annotation(annotation)?.parse().ok()
}

/// Sets the annotations of a Deployment that is rolled back: those of the ReplicaSet, and its own
/// that are never copied.
pub fn restore_annotations(deployment: &mut Value, set: &ReplicaSet) {
    let own = deployment.meta().annotations().cloned().unwrap_or_default();
    let mut annotations = own;
    annotations.retain(|key, _| NOT_COPIED.contains(&key));
    let copied = set
        .object
        .meta()
        .annotations()
        .into_iter()
        .flat_map(Map::iter);

    for (key, value) in copied.filter(|(key, _)| !NOT_COPIED.contains(key)) {
        annotations.insert(key, value.clone());
    }

    deployment.meta_mut().set_annotations(annotations);
}
